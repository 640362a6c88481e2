// RUN: %roundtrip
// RUN: %generic-roundtrip
// RUN: %opt %s -p cse,canonicalize,dce,dist-verify-spmd | filecheck %s --check-prefix=KEPT

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>

// CHECK-LABEL: func.func @start
// CHECK-NEXT:    %p = dist.start {
// CHECK-NEXT:      %s = dist.all_reduce_add_ciphertext %x in %group : !ct_L1_s6
// CHECK-NEXT:      dist.yield %s : !ct_L1_s6
// CHECK-NEXT:    } : !dist.pending<!ct_L1_s6>
// CHECK-NEXT:    %q = dist.start attributes {note} {
// CHECK-NEXT:      %t, %u = dist.all_reduce_add_ciphertexts %x, %y in %group : !ct_L1_s6, !ct_L1_s6
// CHECK-NEXT:      dist.yield %t, %u : !ct_L1_s6, !ct_L1_s6
// CHECK-NEXT:    } : !dist.pending<!ct_L1_s6, !ct_L1_s6>
// CHECK-NEXT:    %r = dist.wait %p : !ct_L1_s6
// CHECK-NEXT:    %a, %b = dist.wait %q {note} : !ct_L1_s6, !ct_L1_s6
// What is started is not merged or removed, and neither is what waits for it.
// KEPT-LABEL:  func.func @start
// KEPT:          dist.start
// KEPT:          dist.start
// KEPT:          dist.wait
// KEPT-NEXT:     dist.wait
func.func @start(%x: !ct, %y: !ct, %group: !dist.group) -> !ct {
  %p = dist.start {
    %s = dist.all_reduce_add_ciphertext %x in %group : !ct
    dist.yield %s : !ct
  } : !dist.pending<!ct>
  %q = dist.start attributes {note} {
    %t, %u = dist.all_reduce_add_ciphertexts %x, %y in %group : !ct, !ct
    dist.yield %t, %u : !ct, !ct
  } : !dist.pending<!ct, !ct>
  %r = dist.wait %p : !ct
  %a, %b = dist.wait %q {note} : !ct, !ct
  func.return %r : !ct
}
