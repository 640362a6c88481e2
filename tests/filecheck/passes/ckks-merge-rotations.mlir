// RUN: %opt %s --split-input-file -p ckks-merge-rotations | filecheck %s

!ct = !ckks.ciphertext
!k1 = !ckks.key<rotation, 1>
!k2 = !ckks.key<rotation, 2>
!km1 = !ckks.key<rotation, -1>

// A chain becomes one rotation, with a key of its own; those that nothing uses go.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    %[[key:.*]] = fhelium.resource @rotation_4 : !ckks.key<rotation, 4>
// CHECK-NEXT:    %[[r:.*]] = ckks.rotate %x by 4 with %[[key]]
// CHECK-NEXT:    func.return %[[r]]
func.func @chain(%x: !ct) -> !ct {
  %k1 = fhelium.resource @rotation_1 : !k1
  %k2 = fhelium.resource @rotation_2 : !k2
  %a = ckks.rotate %x by 1 with %k1 : !ct, !k1
  %b = ckks.rotate %a by 2 with %k2 : !ct, !k2
  %c = ckks.rotate %b by 1 with %k1 : !ct, !k1
  func.return %c : !ct
}

// There and back is nothing, even where the way is used.
// CHECK-LABEL: func.func @back
// CHECK-NEXT:    %k1 = fhelium.resource
// CHECK-NEXT:    %a = ckks.rotate %x by 1
// CHECK-NEXT:    func.return %a, %x
func.func @back(%x: !ct) -> (!ct, !ct) {
  %k1 = fhelium.resource @rotation_1 : !k1
  %km1 = fhelium.resource @rotation_minus_1 : !km1
  %a = ckks.rotate %x by 1 with %k1 : !ct, !k1
  %b = ckks.rotate %a by -1 with %km1 : !ct, !km1
  func.return %a, %b : !ct, !ct
}

// Terms that are rotated alike are added first; signs stay.
// CHECK-LABEL: func.func @terms
// CHECK-NEXT:    %k1 = fhelium.resource @rotation_1
// CHECK-NEXT:    %[[sum:.*]] = ckks.sub %x, %z
// CHECK-NEXT:    %[[rotated:.*]] = ckks.rotate %[[sum]] by 1 with %k1
// CHECK-NEXT:    %[[total:.*]] = ckks.add %[[rotated]], %y
// CHECK-NEXT:    func.return %[[total]]
func.func @terms(%x: !ct, %y: !ct, %z: !ct) -> !ct {
  %k1 = fhelium.resource @rotation_1 : !k1
  %a = ckks.rotate %x by 1 with %k1 : !ct, !k1
  %b = ckks.add %a, %y : !ct
  %c = ckks.rotate %z by 1 with %k1 : !ct, !k1
  %d = ckks.sub %b, %c : !ct
  func.return %d : !ct
}

// A sum of sums comes down to one rotation for all four.
// CHECK-LABEL: func.func @nested
// CHECK-COUNT-1: ckks.rotate
// CHECK-NOT:     ckks.rotate
// CHECK:         func.return
func.func @nested(%x: !ct, %y: !ct, %z: !ct, %w: !ct) -> !ct {
  %k1 = fhelium.resource @rotation_1 : !k1
  %a = ckks.rotate %x by 1 with %k1 : !ct, !k1
  %b = ckks.rotate %y by 1 with %k1 : !ct, !k1
  %c = ckks.add %a, %b : !ct
  %d = ckks.rotate %z by 1 with %k1 : !ct, !k1
  %e = ckks.rotate %w by 1 with %k1 : !ct, !k1
  %f = ckks.sub %d, %e : !ct
  %g = ckks.sub %c, %f : !ct
  func.return %g : !ct
}

// What others use, other steps, and ops that record how they run.
// CHECK-LABEL: func.func @alone
// CHECK-COUNT-5: ckks.rotate
// CHECK:         func.return
func.func @alone(%x: !ct, %y: !ct, %z: !ct) -> (!ct, !ct, !ct, !ct) {
  %k1 = fhelium.resource @rotation_1 : !k1
  %k2 = fhelium.resource @rotation_2 : !k2
  %a = ckks.rotate %x by 1 with %k1 : !ct, !k1
  %b = ckks.rotate %y by 1 with %k1 : !ct, !k1
  %c = ckks.add %a, %b : !ct
  %d = ckks.rotate %z by 2 with %k2 : !ct, !k2
  %e = ckks.add %c, %d : !ct
  %f = ckks.rotate %y by 1 with %k1 {fhelium.implementation = "mine"} : !ct, !k1
  %g = ckks.sub %e, %f : !ct
  %h = ckks.rotate %a by 2 with %k2 : !ct, !k2
  func.return %g, %a, %b, %h : !ct, !ct, !ct, !ct
}

// -----

// Steps are taken modulo the slots.
#p = #ckks.parameters<ring_degree = 16, moduli = [[97]], special = [193], digits = 1,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext
!k6 = !ckks.key<rotation, 6>
// CHECK-LABEL: func.func @modulo
// CHECK:         ckks.rotate %x by -4
builtin.module attributes {ckks.parameters = #p} {
  func.func @modulo(%x: !ct) -> !ct {
    %k6 = fhelium.resource @rotation_6 : !k6
    %a = ckks.rotate %x by 6 with %k6 : !ct, !k6
    %b = ckks.rotate %a by 6 with %k6 : !ct, !k6
    func.return %b : !ct
  }
}
