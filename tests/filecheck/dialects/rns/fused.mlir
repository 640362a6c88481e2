// RUN: %roundtrip
// RUN: %generic-roundtrip
// RUN: %opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

!p = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!p1 = !rns.poly<basis = Q[0:3], components = 1, form = evaluation>
!p3 = !rns.poly<basis = Q[0:3], components = 3, form = evaluation>
!coeff = !rns.poly<basis = Q[0:3], components = 2, form = coefficient>

// Operands are arguments of the region, and what it yields are results.
// CHECK-LABEL: func.func @several
// CHECK-NEXT:  %r, %t = rns.fused (%a = %x, %b = %w) : (!poly2_Q0to3, !poly1_Q0to3) -> (!poly2_Q0to3, !poly3_Q0to3) {
// CHECK-NEXT:    %c = rns.automorphism %a, 5 : !poly2_Q0to3
// CHECK-NEXT:    %d = rns.weighted_sum %c, %a by %b, %b
// CHECK-NEXT:    %e = rns.square %d
// CHECK-NEXT:    rns.yield %d, %e : !poly2_Q0to3, !poly3_Q0to3
// CHECK-NEXT:  }
// CHECK-NEXT:  func.return %r, %t
func.func @several(%x: !p, %w: !p1) -> (!p, !p3) {
  %r, %t = rns.fused (%a = %x, %b = %w) : (!p, !p1) -> (!p, !p3) {
    %c = rns.automorphism %a, 5 : !p
    %d = rns.weighted_sum %c, %a by %b, %b : (!p, !p, !p1, !p1) -> !p
    %e = rns.square %d : !p -> !p3
    rns.yield %d, %e : !p, !p3
  }
  func.return %r, %t : !p, !p3
}

// GENERIC:      "rns.fused"(%{{.*}}) ({
// GENERIC-NEXT: ^bb0(%a: !poly2_Q0to3, %b: !poly1_Q0to3):

// In coefficient form there are sums and products by constants; attributes stay.
// CHECK-LABEL: func.func @coefficients
// CHECK-NEXT:  %r = rns.fused (%a = %x) : (!poly2_Q0to3_coeff) -> !poly2_Q0to3_coeff attributes {fhelium.implementation = "cpu-rns-fused"} {
// CHECK-NEXT:    %b = rns.mul_constant %a, 3
func.func @coefficients(%x: !coeff) -> !coeff {
  %r = rns.fused (%a = %x) : (!coeff) -> !coeff attributes {fhelium.implementation = "cpu-rns-fused"} {
    %b = rns.mul_constant %a, 3 : !coeff
    %c = rns.sub %b, %a : (!coeff, !coeff) -> !coeff
    rns.yield %c : !coeff
  }
  func.return %r : !coeff
}
