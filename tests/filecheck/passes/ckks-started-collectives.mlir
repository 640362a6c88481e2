// RUN: %opt %s -p ckks-default | filecheck %s
// RUN: %opt %s -p 'ckks-default,convert-ckks-to-rns' | filecheck %s --check-prefix=LOWERED

// Sums that are started, and several in one message: schedules go through them. What goes in gets
// to the level at which it comes out, before the message; what is pending has the new types.
// CHECK-LABEL: func.func @main(%x: !ct_L3_s40, %y: !ct_L2_s40) -> (!ct_L0_s40, !ct_L0_s40) {
// CHECK:         %xy = ckks.mul %{{.*}}, %y : (!ct_L2_s40, !ct_L2_s40) -> !ct3_L2_s80
// CHECK-NEXT:    %[[rel:.*]] = ckks.relinearize %xy with %{{.*}} : !ct3_L2_s80 -> !ct_L2_s80
// CHECK-NEXT:    %[[xy:.*]] = ckks.rescale %[[rel]] : !ct_L2_s80 -> !ct_L1_s40
// CHECK-NEXT:    %[[big:.*]] = ckks.mul_scalar %y, 1.000000e+00 : !ct_L2_s40 -> !ct_L2_s80
// CHECK-NEXT:    %[[y:.*]] = ckks.rescale %[[big]] : !ct_L2_s80 -> !ct_L1_s40
// CHECK-NEXT:    %pending = dist.start {
// CHECK-NEXT:      %s, %t = dist.all_reduce_add_ciphertexts %[[xy]], %[[y]] in %world : !ct_L1_s40, !ct_L1_s40
// CHECK-NEXT:      dist.yield %s, %t : !ct_L1_s40, !ct_L1_s40
// CHECK-NEXT:    } : !dist.pending<!ct_L1_s40, !ct_L1_s40>
// CHECK:         %z = ckks.mul %{{.*}}, %y : (!ct_L2_s40, !ct_L2_s40) -> !ct3_L2_s80
// CHECK:         %a, %b = dist.wait %pending : !ct_L1_s40, !ct_L1_s40
// CHECK-NEXT:    %c = ckks.add %a, %{{.*}} : !ct_L1_s40
// CHECK-NEXT:    %d = ckks.mul %b, %c : (!ct_L1_s40, !ct_L1_s40) -> !ct3_L1_s80
// CHECK:         %e, %f = dist.all_reduce_add_ciphertexts %{{.*}}, %{{.*}} in %world : !ct_L0_s40, !ct_L0_s40
// CHECK-NEXT:    func.return %e, %f : !ct_L0_s40, !ct_L0_s40
// LOWERED:       dist.start {
// LOWERED:         dist.all_reduce_add_ciphertexts {{.*}} : !poly2_Q0to2, !poly2_Q0to2 mod !rns.moduli<Q[0:2]>, !rns.moduli<Q[0:2]>
// LOWERED:       } : !dist.pending<!poly2_Q0to2, !poly2_Q0to2>
// LOWERED:       %a, %b = dist.wait %pending : !poly2_Q0to2, !poly2_Q0to2
!ct = !ckks.ciphertext
func.func @main(%x: !ct, %y: !ct) -> (!ct, !ct) {
  %world = fhelium.resource @world : !dist.group
  %xx = ckks.mul %x, %x : (!ct, !ct) -> !ct
  %xy = ckks.mul %xx, %y : (!ct, !ct) -> !ct
  %pending = dist.start {
    %s, %t = dist.all_reduce_add_ciphertexts %xy, %y in %world : !ct, !ct
    dist.yield %s, %t : !ct, !ct
  } : !dist.pending<!ct, !ct>
  %z = ckks.mul %x, %y : (!ct, !ct) -> !ct
  %a, %b = dist.wait %pending : !ct, !ct
  %c = ckks.add %a, %z : !ct
  %d = ckks.mul %b, %c : (!ct, !ct) -> !ct
  %e, %f = dist.all_reduce_add_ciphertexts %x, %d in %world : !ct, !ct
  func.return %e, %f : !ct, !ct
}
