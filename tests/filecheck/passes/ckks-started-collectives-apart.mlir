// RUN: %opt %s -p ckks-default | filecheck %s
// RUN: %opt %s -p ckks-lazy | filecheck %s --check-prefix=LAZY

// Sums of one message, started in a branch, each in a state of its own: at its level, and where
// relinearization comes late, with its components.
// CHECK-LABEL: func.func @apart(
// CHECK:         dist.start {
// CHECK-NEXT:      %s, %t = dist.all_reduce_add_ciphertexts %{{.*}}, %y in %world : !ct_L0_s39, !ct_L2_s39
// CHECK-NEXT:      dist.yield %s, %t : !ct_L0_s39, !ct_L2_s39
// CHECK-NEXT:    } : !dist.pending<!ct_L0_s39, !ct_L2_s39>
// CHECK-NEXT:    %a, %b = dist.wait %pending : !ct_L0_s39, !ct_L2_s39
// CHECK-NEXT:    %bb = ckks.square %b
// CHECK:         scf.yield %a, %{{.*}} : !ct_L0_s39, !ct_L0_s39
// LAZY-LABEL:  func.func @apart(
// LAZY:          dist.start {
// LAZY-NEXT:       %s, %t = dist.all_reduce_add_ciphertexts %xy, %y in %world : !ct3_L1_s78, !ct_L2_s39
// LAZY-NEXT:       dist.yield %s, %t : !ct3_L1_s78, !ct_L2_s39
// LAZY-NEXT:     } : !dist.pending<!ct3_L1_s78, !ct_L2_s39>
// LAZY-NEXT:     %a, %b = dist.wait %pending : !ct3_L1_s78, !ct_L2_s39
// LAZY-NEXT:     ckks.relinearize %a
!ct = !ckks.ciphertext
func.func @apart(%x: !ct, %y: !ct, %go: i1) -> (!ct, !ct) {
  %world = fhelium.resource @world : !dist.group
  %xy = ckks.mul %x, %y : (!ct, !ct) -> !ct
  %c, %d = scf.if %go -> (!ct, !ct) {
    %pending = dist.start {
      %s, %t = dist.all_reduce_add_ciphertexts %xy, %y in %world : !ct, !ct
      dist.yield %s, %t : !ct, !ct
    } : !dist.pending<!ct, !ct>
    %a, %b = dist.wait %pending : !ct, !ct
    %bb = ckks.mul %b, %b : (!ct, !ct) -> !ct
    %bbb = ckks.mul %bb, %b : (!ct, !ct) -> !ct
    scf.yield %a, %bbb : !ct, !ct
  } else {
    scf.yield %x, %y : !ct, !ct
  }
  func.return %c, %d : !ct, !ct
}
