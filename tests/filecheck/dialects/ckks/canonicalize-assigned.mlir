// RUN: %opt %s -p canonicalize | filecheck %s

// Ops that record how they run stay, whether an identity would replace them, drop them, or do
// without them.

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!coeff = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = coefficient>

// CHECK-LABEL: func.func @outer
// CHECK-NEXT:  %a = ckks.negate %x
// CHECK-NEXT:  %b = ckks.negate %a {fhelium.implementation = "mine"}
// CHECK-NEXT:  %c = ckks.to_coefficient %x
// CHECK-NEXT:  %d = ckks.to_evaluation %c {fhelium.implementation = "mine"}
// CHECK-NEXT:  %e = ckks.mul_integer %x, 1 {fhelium.implementation = "mine"}
// CHECK-NEXT:  func.return %b, %d, %e
func.func @outer(%x: !ct) -> (!ct, !ct, !ct) {
  %a = ckks.negate %x : !ct
  %b = ckks.negate %a {fhelium.implementation = "mine"} : !ct
  %c = ckks.to_coefficient %x : !ct -> !coeff
  %d = ckks.to_evaluation %c {fhelium.implementation = "mine"} : !coeff -> !ct
  %e = ckks.mul_integer %x, 1 {fhelium.implementation = "mine"} : !ct
  func.return %b, %d, %e : !ct, !ct, !ct
}

// CHECK-LABEL: func.func @inner
// CHECK-NEXT:  %a = ckks.negate %x {fhelium.implementation = "mine"}
// CHECK-NEXT:  %b = ckks.negate %a
// CHECK-NEXT:  %c = ckks.add %y, %a
// CHECK-NEXT:  %d = ckks.sub %y, %a
// CHECK-NEXT:  func.return %b, %c, %d
func.func @inner(%x: !ct, %y: !ct) -> (!ct, !ct, !ct) {
  %a = ckks.negate %x {fhelium.implementation = "mine"} : !ct
  %b = ckks.negate %a : !ct
  %c = ckks.add %y, %a : !ct
  %d = ckks.sub %y, %a : !ct
  func.return %b, %c, %d : !ct, !ct, !ct
}

// CHECK-LABEL: func.func @key_switches
// CHECK:       %a = ckks.conjugate %x with %key {fhelium.implementation = "mine"}
// CHECK-NEXT:  %b = ckks.conjugate %a with %key
// CHECK-NEXT:  %c = ckks.rotate %x by 2 with %left {fhelium.implementation = "mine"}
// CHECK-NEXT:  %d = ckks.rotate %c by -2 with %right
// CHECK-NEXT:  func.return %b, %d
func.func @key_switches(%x: !ct) -> (!ct, !ct) {
  %key = fhelium.resource @key : !ckks.key<conjugation>
  %left = fhelium.resource @left : !ckks.key<rotation, 2>
  %right = fhelium.resource @right : !ckks.key<rotation, -2>
  %a = ckks.conjugate %x with %key {fhelium.implementation = "mine"} : !ct
  %b = ckks.conjugate %a with %key : !ct
  %c = ckks.rotate %x by 2 with %left {fhelium.implementation = "mine"} : !ct, !ckks.key<rotation, 2>
  %d = ckks.rotate %c by -2 with %right : !ct, !ckks.key<rotation, -2>
  func.return %b, %d : !ct, !ct
}
