// RUN: %opt %s -p ckks-fuse-rescales | filecheck %s
// RUN: %opt %s -p ckks-fuse-rescales --print-debuginfo | filecheck %s --check-prefix=PLACE
// RUN: %opt %s -p ckks-fuse-rescales,convert-ckks-to-rns,canonicalize,cse,dce | filecheck %s --check-prefix=LOWERED
// RUN: %opt %s -p convert-ckks-to-rns,cse,rns-fuse-divisions,canonicalize,cse,dce | filecheck %s --check-prefix=LOWERED

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^6, secret = ternary, security = none>
!ct3 = !ckks.ciphertext<level = 2, scale = 2^12, components = 3, form = evaluation>
!ct2 = !ckks.ciphertext<level = 2, scale = 2^12, components = 2, form = evaluation>
!down = !ckks.ciphertext<level = 1, scale = 15.937743190661479, components = 2, form = evaluation>

builtin.module attributes {ckks.parameters = #p} {
  // CHECK-LABEL: func.func @fused
  // CHECK-NEXT:    %key = fhelium.resource
  // CHECK-NEXT:    %z = ckks.relinearize_rescale %x3 with %key : !ct3_L2_s12 -> !ct_L1_s{{[0-9_]+}}
  // CHECK-NEXT:    func.return %z
  // PLACE:         ckks.relinearize_rescale {{.*}} loc("{{.*}}ckks-fuse-rescales.mlir":33:10)

  // The lowering is what the passes of rns make of the two.
  // LOWERED-LABEL: func.func @fused
  // LOWERED:         %[[k:.*]] = rns.key_product
  // LOWERED:         rns.scale_up
  // LOWERED-NEXT:    rns.add
  // LOWERED-NEXT:    rns.project {{.*}} -> !poly2_Q2_P0
  // LOWERED-NEXT:    rns.intt
  // LOWERED-NEXT:    rns.mod_up {{.*}} -> !poly2_Q0to2_coeff
  // LOWERED-NEXT:    rns.ntt
  // LOWERED-NEXT:    rns.mod_down
  // LOWERED-NEXT:    func.return
  func.func @fused(%x3: !ct3) -> !down {
    %key = fhelium.resource @relinearization : !ckks.key<relinearization>
    %y = ckks.relinearize %x3 with %key : !ct3 -> !ct2
    %z = ckks.rescale %y : !ct2 -> !down
    func.return %z : !down
  }

  // Another use of the first result, an assignment, and a rescale of something else.
  // CHECK-LABEL: func.func @apart
  // CHECK-NOT:   ckks.relinearize_rescale
  // CHECK:       func.return
  func.func @apart(%x3: !ct3, %other: !ct2) -> (!ct2, !down, !down, !down, !down) {
    %key = fhelium.resource @relinearization : !ckks.key<relinearization>
    %a = ckks.relinearize %x3 with %key : !ct3 -> !ct2
    %b = ckks.rescale %a : !ct2 -> !down
    %c = ckks.relinearize %x3 with %key {fhelium.implementation = "mine"} : !ct3 -> !ct2
    %d = ckks.rescale %c : !ct2 -> !down
    %e = ckks.relinearize %x3 with %key : !ct3 -> !ct2
    %f = ckks.rescale %e {fhelium.in_place} : !ct2 -> !down
    %g = ckks.rescale %other : !ct2 -> !down
    func.return %a, %b, %d, %f, %g : !ct2, !down, !down, !down, !down
  }
  // Two on one device become one there; two that are not on the same stay.
  // CHECK-LABEL: func.func @placed
  // CHECK:         %b = ckks.relinearize_rescale %x3 with %key {mem.device = @gpu0, mem.space = #mem<space pageable_host>} :
  // CHECK-NEXT:    %c = ckks.relinearize %x3 with %key {mem.device = @gpu0}
  // CHECK-NEXT:    %d = ckks.rescale %c :
  // CHECK-NEXT:    %e = ckks.relinearize %x3 with %key :
  // CHECK-NEXT:    %f = ckks.rescale %e {mem.device = @gpu0}
  func.func @placed(%x3: !ct3) -> (!down, !down, !down) {
    %key = fhelium.resource @relinearization : !ckks.key<relinearization>
    %a = ckks.relinearize %x3 with %key {mem.device = @gpu0, mem.space = #mem<space pageable_host>} : !ct3 -> !ct2
    %b = ckks.rescale %a {mem.device = @gpu0, mem.space = #mem<space pageable_host>} : !ct2 -> !down
    %c = ckks.relinearize %x3 with %key {mem.device = @gpu0} : !ct3 -> !ct2
    %d = ckks.rescale %c : !ct2 -> !down
    %e = ckks.relinearize %x3 with %key : !ct3 -> !ct2
    %f = ckks.rescale %e {mem.device = @gpu0} : !ct2 -> !down
    func.return %b, %d, %f : !down, !down, !down
  }
}
