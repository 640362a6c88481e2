// RUN: %opt %s -p ckks-default | filecheck %s
// RUN: %opt %s -p ckks-lazy | filecheck %s --check-prefix=LAZY
// RUN: %opt %s -p 'ckks-default,ckks-default,rns-default' | filecheck %s --check-prefix=LOWERED
// RUN: %opt %s -p 'ckks-insert-relinearize,ckks-insert-rescale,ckks-insert-mod-switch,ckks-assign-levels,ckks-select-parameters{by=program ranks=2},ckks-assign-scales,ckks-annotate-error{ranks=2}' | filecheck %s --check-prefix=PRECISE
// RUN: not %opt %s -p 'ckks-insert-relinearize,ckks-insert-rescale,ckks-insert-mod-switch,ckks-assign-levels,ckks-select-parameters{by=program}' 2>&1 | filecheck %s --check-prefix=UNKNOWN

// PRECISE:       scale = 2^48
// PRECISE:       %sum = ckks.add_plain {{.*}}{ckks.precision_bits = 2.{{[0-9]+}}e+01
// UNKNOWN:       pass ckks-select-parameters: found dist.reduce_scatter over a group of unknown size, expected the option ranks=: the error grows with it

// Collectives that join and cut keep level and scale. What is sent is at rest, at the level that
// its receiver needs, though the receiver comes first; a tag is one state, another one another.
// Plaintexts take the state of what their results meet, and are encoded for each.
// CHECK:         %all = dist.all_gather %[[xy:.*]] along 0 in %world : !ct_L3_s41 -> !ct_L3_s41
// CHECK:         %share = dist.reduce_scatter %all along 0 in %world : !ct_L3_s41 -> !ct_L3_s41 combine {
// CHECK-NEXT:    ^bb0(%a: !ct_L3_s41, %b: !ct_L3_s41):
// CHECK:         %got = scf.if %first -> (!ct_L1_s41) {
// CHECK-NEXT:      %r = dist.recv from 1 in %world tag 4 : !ct_L2_s41_1
// CHECK-NEXT:      %q = ckks.square %r : !ct_L2_s41_1 -> !ct3_L2_s82
// CHECK:           %low = dist.recv from 1 in %world tag 5 : !ct_L1_s41
// CHECK:         %square = ckks.square %share : !ct_L3_s41 -> !ct3_L3_s82
// CHECK-NEXT:    %[[relinearized:.*]] = ckks.relinearize %square
// CHECK-NEXT:    %[[sent:.*]] = ckks.rescale %[[relinearized]] : !ct_L3_s82 -> !ct_L2_s41_1
// CHECK:           dist.send %[[sent]] to 0 in %world tag 4 : !ct_L2_s41_1
// CHECK:           dist.send %{{.*}} to 0 in %world tag 5 : !ct_L1_s41
// CHECK:         %p = ckks.encode %v : tensor<8xf64> -> !pt_L0_s41
// CHECK-NEXT:    %p_1 = ckks.encode %v : tensor<8xf64> -> !pt_L1_s41
// CHECK-NEXT:    %rows = dist.all_gather %p_1 along 0 in %world : !pt_L1_s41 -> !pt_L1_s41
// CHECK-NEXT:    %same = dist.broadcast %rows from 0 in %world : !pt_L1_s41
// CHECK:         %sum = ckks.add_plain %{{.*}}, %p : !ct_L0_s41, !pt_L0_s41
// LAZY:          dist.send %{{.*}} to 0 in %world tag 4 : !ct_L2_s41_1
// LOWERED:       %all = dist.all_gather %{{.*}} along 0 in %world : !poly2_Q0to4 -> !poly2_Q0to4
// LOWERED:       dist.recv from 1 in %world tag 4 : !poly2_Q0to3
// LOWERED:       dist.send %{{.*}} to 0 in %world tag 4 : !poly2_Q0to3
!ct = !ckks.ciphertext
!pt = !ckks.plaintext
builtin.module {
  func.func @main(%x: !ct, %y: !ct, %v: tensor<8xf64>) -> (!ct, !ct) {
    %world = fhelium.resource @world : !dist.group
    %xy = ckks.mul %x, %y : (!ct, !ct) -> !ct
    %all = dist.all_gather %xy along 0 in %world : !ct -> !ct
    %share = dist.reduce_scatter %all along 0 in %world : !ct -> !ct combine {
    ^bb0(%a: !ct, %b: !ct):
      %c = ckks.add %a, %b : !ct
      dist.yield %c : !ct
    }
    %rank = dist.rank %world
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %first = arith.cmpi eq, %rank, %zero : index
    %second = arith.cmpi eq, %rank, %one : index
    %got = scf.if %first -> (!ct) {
      %r = dist.recv from 1 in %world tag 4 : !ct
      %q = ckks.mul %r, %r : (!ct, !ct) -> !ct
      %low = dist.recv from 1 in %world tag 5 : !ct
      %s = ckks.add %q, %low : !ct
      scf.yield %s : !ct
    } else {
      scf.yield %x : !ct
    }
    %square = ckks.mul %share, %share : (!ct, !ct) -> !ct
    scf.if %second {
      dist.send %square to 0 in %world tag 4 : !ct
      dist.send %x to 0 in %world tag 5 : !ct
    }
    %p = ckks.encode %v : tensor<8xf64> -> !pt
    %rows = dist.all_gather %p along 0 in %world : !pt -> !pt
    %same = dist.broadcast %rows from 0 in %world : !pt
    %product = ckks.mul_plain %got, %same : (!ct, !pt) -> !ct
    %sum = ckks.add_plain %product, %p : !ct, !pt
    func.return %sum, %xy : !ct, !ct
  }
}
