// RUN: %opt %s -p canonicalize | filecheck %s

// Each identity, and beside it a neighbour that is none.

!p = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!p1 = !rns.poly<basis = Q[0:3], components = 1, form = evaluation>
!coeff = !rns.poly<basis = Q[0:3], components = 2, form = coefficient>
!low = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!least = !rns.poly<basis = Q[0], components = 2, form = evaluation>

// ntt(intt(x)) -> x, and the other way round
// CHECK-LABEL: func.func @transform_round_trip
// CHECK-NEXT:  func.return %x, %c
func.func @transform_round_trip(%x: !p, %c: !coeff) -> (!p, !coeff) {
  %a = rns.intt %x : !p -> !coeff
  %b = rns.ntt %a : !coeff -> !p
  %d = rns.ntt %c : !coeff -> !p
  %e = rns.intt %d : !p -> !coeff
  func.return %b, %e : !p, !coeff
}

// CHECK-LABEL: func.func @transform_once
// CHECK-NEXT:  rns.intt
// CHECK-NEXT:  rns.negate
// CHECK-NEXT:  rns.ntt
func.func @transform_once(%x: !p) -> !p {
  %a = rns.intt %x : !p -> !coeff
  %b = rns.negate %a : !coeff
  %c = rns.ntt %b : !coeff -> !p
  func.return %c : !p
}

// negate(negate(x)) -> x
// CHECK-LABEL: func.func @negate
// CHECK-NEXT:  %c = rns.negate %y
// CHECK-NEXT:  func.return %x, %c
func.func @negate(%x: !p, %y: !p) -> (!p, !p) {
  %a = rns.negate %x : !p
  %b = rns.negate %a : !p
  %c = rns.negate %y : !p
  func.return %b, %c : !p, !p
}

// project(x) -> x when it keeps every limb; project(project(x)) -> project(x)
// CHECK-LABEL: func.func @project
// CHECK-NEXT:  %b = rns.project %x : !poly2_Q0to3 -> !poly2_Q0to2
// CHECK-NEXT:  %c = rns.project %x : !poly2_Q0to3 -> !poly2_Q0
// CHECK-NEXT:  func.return %x, %b, %c
func.func @project(%x: !p) -> (!p, !low, !least) {
  %a = rns.project %x : !p -> !p
  %b = rns.project %x : !p -> !low
  %c = rns.project %b : !low -> !least
  func.return %a, %b, %c : !p, !low, !least
}

// CHECK-LABEL: func.func @assigned_project
// CHECK-NEXT:  %a = rns.project %x
// CHECK-NEXT:  %b = rns.project %a {fhelium.implementation = "mine"}
func.func @assigned_project(%x: !p) -> !least {
  %a = rns.project %x : !p -> !low
  %b = rns.project %a {fhelium.implementation = "mine"} : !low -> !least
  func.return %b : !least
}

// components(x) -> x when it keeps every component
// CHECK-LABEL: func.func @components
// CHECK-NEXT:  %b = rns.components %x[0 to 1]
// CHECK-NEXT:  func.return %x, %b
func.func @components(%x: !p) -> (!p, !p1) {
  %a = rns.components %x[0 to 2] : !p -> !p
  %b = rns.components %x[0 to 1] : !p -> !p1
  func.return %a, %b : !p, !p1
}

// add_constant(x, 0) -> x, mul_constant(x, 1) -> x, automorphism(x, 1) -> x
// CHECK-LABEL: func.func @neutral
// CHECK-NEXT:  %d = rns.add_constant %x, 1
// CHECK-NEXT:  %e = rns.mul_constant %x, 0
// CHECK-NEXT:  %f = rns.mul_constant %x, -1
// CHECK-NEXT:  %g = rns.automorphism %x, 3
// CHECK-NEXT:  func.return %x, %x, %x, %d, %e, %f, %g
func.func @neutral(%x: !p) -> (!p, !p, !p, !p, !p, !p, !p) {
  %a = rns.add_constant %x, 0 : !p
  %b = rns.mul_constant %x, 1 : !p
  %c = rns.automorphism %x, 1 : !p
  %d = rns.add_constant %x, 1 : !p
  %e = rns.mul_constant %x, 0 : !p
  %f = rns.mul_constant %x, -1 : !p
  %g = rns.automorphism %x, 3 : !p
  func.return %a, %b, %c, %d, %e, %f, %g : !p, !p, !p, !p, !p, !p, !p
}
