// RUN: %opt %s -p canonicalize | filecheck %s

// Ops that record how they run stay, whether an identity would replace them, drop them, or do
// without them.

!p = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!coeff = !rns.poly<basis = Q[0:2], components = 2, form = coefficient>

// CHECK-LABEL: func.func @outer
// CHECK-NEXT:  %a = rns.negate %x
// CHECK-NEXT:  %b = rns.negate %a {fhelium.implementation = "mine"}
// CHECK-NEXT:  %c = rns.intt %x
// CHECK-NEXT:  %d = rns.ntt %c {fhelium.implementation = "mine"}
// CHECK-NEXT:  %e = rns.add_constant %x, 0 {fhelium.implementation = "mine"}
// CHECK-NEXT:  func.return %b, %d, %e
func.func @outer(%x: !p) -> (!p, !p, !p) {
  %a = rns.negate %x : !p
  %b = rns.negate %a {fhelium.implementation = "mine"} : !p
  %c = rns.intt %x : !p -> !coeff
  %d = rns.ntt %c {fhelium.implementation = "mine"} : !coeff -> !p
  %e = rns.add_constant %x, 0 {fhelium.implementation = "mine"} : !p
  func.return %b, %d, %e : !p, !p, !p
}

// CHECK-LABEL: func.func @inner
// CHECK-NEXT:  %a = rns.negate %x {fhelium.implementation = "mine"}
// CHECK-NEXT:  %b = rns.negate %a
// CHECK-NEXT:  func.return %b
func.func @inner(%x: !p) -> !p {
  %a = rns.negate %x {fhelium.implementation = "mine"} : !p
  %b = rns.negate %a : !p
  func.return %b : !p
}

// Without %b, the result would be what %a has overwritten.
// CHECK-LABEL: func.func @overwritten
// CHECK-NEXT:  %a = rns.negate %x {fhelium.in_place}
// CHECK-NEXT:  %b = rns.negate %a
// CHECK-NEXT:  func.return %a, %b
func.func @overwritten(%x: !p) -> (!p, !p) {
  %a = rns.negate %x {fhelium.in_place} : !p
  %b = rns.negate %a : !p
  func.return %a, %b : !p, !p
}
