// RUN: %opt %s -p 'ckks-decompose-rotations{steps=1,4,-1}' | filecheck %s --check-prefixes=CHECK,GIVEN
// RUN: %opt %s -p ckks-decompose-rotations | filecheck %s --check-prefixes=CHECK,POWERS

#p = #ckks.parameters<ring_degree = 16, moduli = [[97]], special = [193], digits = 1,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext
!k3 = !ckks.key<rotation, 3>
!k7 = !ckks.key<rotation, 7>
!k4 = !ckks.key<rotation, 4>
!k6 = !ckks.key<rotation, 6>
builtin.module attributes {ckks.parameters = #p} {

// The fewest rotations, modulo 8 slots: 3 = 4 - 1, or 1 + 2.
// CHECK-LABEL:  func.func @one(
// CHECK-NOT:      @rotation_3
// GIVEN:          %[[a:.*]] = ckks.rotate %x by 4
// GIVEN-NEXT:     %[[b:.*]] = ckks.rotate %[[a]] by -1
// POWERS:         %[[a:.*]] = ckks.rotate %x by 2
// POWERS-NEXT:    %[[b:.*]] = ckks.rotate %[[a]] by 1
// CHECK-NEXT:     func.return %[[b]]
func.func @one(%x: !ct) -> !ct {
  %k3 = fhelium.resource @rotation_3 : !k3
  %a = ckks.rotate %x by 3 with %k3 : !ct, !k3
  func.return %a : !ct
}

// Several share what they have in common: 7 = -1 and 6 = 7 - 1, or 6 = 4 + 2 and 7 = 6 + 1.
// CHECK-LABEL:  func.func @several
// GIVEN-COUNT-2:  ckks.rotate
// POWERS-COUNT-3: ckks.rotate
// CHECK-NOT:      ckks.rotate
// CHECK:          func.return
func.func @several(%x: !ct) -> (!ct, !ct) {
  %k7 = fhelium.resource @rotation_7 : !k7
  %k6 = fhelium.resource @rotation_6 : !k6
  %a, %b = ckks.rotate_many %x by [7, 6] with %k7, %k6 : (!ct, !k7, !k6) -> (!ct, !ct)
  func.return %a, %b : !ct, !ct
}

// CHECK-LABEL:  func.func @alone
// CHECK-NEXT:     %k4 = fhelium.resource
// CHECK-NEXT:     %k3 = fhelium.resource
// CHECK-NEXT:     %a = ckks.rotate %x by 4 with %k4
// CHECK-NEXT:     %b = ckks.rotate %y by 3 with %k3 {fhelium.implementation = "mine"}
func.func @alone(%x: !ct, %y: !ct) -> (!ct, !ct) {
  %k4 = fhelium.resource @rotation_4 : !k4
  %k3 = fhelium.resource @rotation_3 : !k3
  %a = ckks.rotate %x by 4 with %k4 : !ct, !k4
  %b = ckks.rotate %y by 3 with %k3 {fhelium.implementation = "mine"} : !ct, !k3
  func.return %a, %b : !ct, !ct
}
}
