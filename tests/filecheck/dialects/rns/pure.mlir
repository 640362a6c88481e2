// RUN: %opt %s -p cse | filecheck %s --check-prefix=CSE
// RUN: %opt %s -p dce | filecheck %s --check-prefix=DCE

// All ops are pure: equal ones merge, and unused ones go.

!p = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!p1 = !rns.poly<basis = Q[0:3], components = 1, form = evaluation>
!p3 = !rns.poly<basis = Q[0:3], components = 3, form = evaluation>
!coeff = !rns.poly<basis = Q[0:3], components = 2, form = coefficient>
!coeff_low = !rns.poly<basis = Q[0:2], components = 2, form = coefficient>
!low = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!key = !ckks.key<relinearization>

// CSE-LABEL: func.func @equal
// CSE-NEXT:  %a = rns.intt %x
// CSE-NEXT:  %c = rns.key_product %d with %key
// CSE-NEXT:  func.return %a, %a, %c, %c
func.func @equal(%x: !p, %d: !p1, %key: !key) -> (!coeff, !coeff, !p, !p) {
  %a = rns.intt %x : !p -> !coeff
  %b = rns.intt %x : !p -> !coeff
  %c = rns.key_product %d with %key : (!p1, !key) -> !p
  %e = rns.key_product %d with %key : (!p1, !key) -> !p
  func.return %a, %b, %c, %e : !coeff, !coeff, !p, !p
}

// CSE-LABEL: func.func @unequal
// CSE-NEXT:  rns.mul_constant %x, 2
// CSE-NEXT:  rns.mul_constant %x, 3
// CSE-NEXT:  rns.sub %x, %y
// CSE-NEXT:  rns.sub %y, %x
// CSE-NEXT:  rns.project
// CSE-NEXT:  rns.project
// CSE-NEXT:  rns.negate %x
// CSE-NEXT:  rns.negate %x {fhelium.implementation = "mine"}
// CSE-NEXT:  func.return
func.func @unequal(%x: !p, %y: !p) -> (!p, !p, !p, !p, !p, !low, !p, !p) {
  %a = rns.mul_constant %x, 2 : !p
  %b = rns.mul_constant %x, 3 : !p
  %c = rns.sub %x, %y : (!p, !p) -> !p
  %d = rns.sub %y, %x : (!p, !p) -> !p
  %e = rns.project %x : !p -> !p
  %f = rns.project %x : !p -> !low
  %g = rns.negate %x : !p
  %h = rns.negate %x {fhelium.implementation = "mine"} : !p
  func.return %a, %b, %c, %d, %e, %f, %g, %h : !p, !p, !p, !p, !p, !low, !p, !p
}

// DCE-LABEL: func.func @unused
// DCE-NEXT:  func.return
func.func @unused(%x: !p, %x1: !p1, %c: !coeff, %low: !low, %key: !key) {
  %0 = rns.moduli : !rns.moduli<Q[0]>
  %1 = rns.add %x, %x1 : (!p, !p1) -> !p
  %2 = rns.sub %x, %x1 : (!p, !p1) -> !p
  %3 = rns.negate %x : !p
  %4 = rns.mul %x, %x : (!p, !p) -> !p3
  %5 = rns.square %x : !p -> !p3
  %6 = rns.weighted_sum %x by %x1 : (!p, !p1) -> !p
  %7 = rns.add_constant %x, 1 : !p
  %8 = rns.mul_constant %x, 2 : !p
  %9 = rns.components %x[0 to 1] : !p -> !p1
  %10 = rns.ntt %c : !coeff -> !p
  %11 = rns.intt %x : !p -> !coeff
  %12 = rns.automorphism %x, 3 : !p
  %13 = rns.project %x : !p -> !low
  %14 = rns.mod_up %c : !coeff -> !coeff_low
  %15 = rns.scale_up %low : !low -> !p
  %16 = rns.mod_down %x, %low : !p, !low
  %17 = rns.key_product %x1 with %key : (!p1, !key) -> !p
  func.return
}
