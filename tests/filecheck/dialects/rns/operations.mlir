// RUN: %roundtrip
// RUN: %generic-roundtrip
// RUN: %opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

!p = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!p1 = !rns.poly<basis = Q[0:3], components = 1, form = evaluation>
!p3 = !rns.poly<basis = Q[0:3], components = 3, form = evaluation>
!coeff = !rns.poly<basis = Q[0:3], components = 2, form = coefficient>
!top = !rns.poly<basis = Q[2], components = 2, form = coefficient>
!low = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!low_coeff = !rns.poly<basis = Q[0:2], components = 2, form = coefficient>
!raised = !rns.poly<basis = Q[0:3] P[0:2], components = 1, form = evaluation>
!raised2 = !rns.poly<basis = Q[0:3] P[0:2], components = 2, form = evaluation>
!key = !ckks.key<relinearization>

// CHECK-LABEL:  func.func @arithmetic
// GENERIC:      "func.func"() <{sym_name = "arithmetic"
func.func @arithmetic(%x: !p, %y: !p, %x1: !p1, %y1: !p1, %x3: !p3) {
  // CHECK-NEXT:   %moduli = rns.moduli : !rns.moduli<Q[0:3] P[0]>
  // GENERIC:      %moduli = "rns.moduli"() : () -> !rns.moduli<Q[0:3] P[0]>
  %moduli = rns.moduli : !rns.moduli<Q[0:3] P[0]>

  // CHECK-NEXT:   %add = rns.add %x, %y : (!poly2_Q0to3, !poly2_Q0to3) -> !poly2_Q0to3
  // GENERIC-NEXT: %add = "rns.add"(%x, %y) : (!poly2_Q0to3, !poly2_Q0to3) -> !poly2_Q0to3
  %add = rns.add %x, %y : (!p, !p) -> !p

  // Missing components count as zero.
  // CHECK-NEXT:   %add_1 = rns.add %x1, %x3 : (!poly1_Q0to3, !poly3_Q0to3) -> !poly3_Q0to3
  // GENERIC-NEXT: %add_1 = "rns.add"(%x1, %x3)
  %add_1 = rns.add %x1, %x3 : (!p1, !p3) -> !p3

  // CHECK-NEXT:   %sub = rns.sub %x, %y1 {fhelium.implementation = "mine"} : (!poly2_Q0to3, !poly1_Q0to3) -> !poly2_Q0to3
  // GENERIC-NEXT: %sub = "rns.sub"(%x, %y1) {fhelium.implementation = "mine"} : (!poly2_Q0to3, !poly1_Q0to3) -> !poly2_Q0to3
  %sub = rns.sub %x, %y1 {fhelium.implementation = "mine"} : (!p, !p1) -> !p

  // CHECK-NEXT:   %negate = rns.negate %x : !poly2_Q0to3
  // GENERIC-NEXT: %negate = "rns.negate"(%x) : (!poly2_Q0to3) -> !poly2_Q0to3
  %negate = rns.negate %x : !p

  // CHECK-NEXT:   %mul = rns.mul %x, %y : (!poly2_Q0to3, !poly2_Q0to3) -> !poly3_Q0to3
  // GENERIC-NEXT: %mul = "rns.mul"(%x, %y) : (!poly2_Q0to3, !poly2_Q0to3) -> !poly3_Q0to3
  %mul = rns.mul %x, %y : (!p, !p) -> !p3

  // CHECK-NEXT:   %mul_1 = rns.mul %x, %x1 : (!poly2_Q0to3, !poly1_Q0to3) -> !poly2_Q0to3
  // GENERIC-NEXT: %mul_1 = "rns.mul"(%x, %x1)
  %mul_1 = rns.mul %x, %x1 : (!p, !p1) -> !p

  // CHECK-NEXT:   %square = rns.square %x : !poly2_Q0to3 -> !poly3_Q0to3
  // GENERIC-NEXT: %square = "rns.square"(%x) : (!poly2_Q0to3) -> !poly3_Q0to3
  %square = rns.square %x : !p -> !p3

  // CHECK-NEXT:   %weighted_sum = rns.weighted_sum %x, %y by %x1, %y1 : (!poly2_Q0to3, !poly2_Q0to3, !poly1_Q0to3, !poly1_Q0to3) -> !poly2_Q0to3
  // GENERIC-NEXT: %weighted_sum = "rns.weighted_sum"(%x, %y, %x1, %y1) : (!poly2_Q0to3, !poly2_Q0to3, !poly1_Q0to3, !poly1_Q0to3) -> !poly2_Q0to3
  %weighted_sum = rns.weighted_sum %x, %y by %x1, %y1 : (!p, !p, !p1, !p1) -> !p

  // Constants are wider than any machine word.
  // CHECK-NEXT:   %add_constant = rns.add_constant %x, -36893488147419103232 : !poly2_Q0to3
  // GENERIC-NEXT: %add_constant = "rns.add_constant"(%x) <{constant = -36893488147419103232 : i1024}> : (!poly2_Q0to3) -> !poly2_Q0to3
  %add_constant = rns.add_constant %x, -36893488147419103232 : !p

  // CHECK-NEXT:   %mul_constant = rns.mul_constant %x, 3 : !poly2_Q0to3
  // GENERIC-NEXT: %mul_constant = "rns.mul_constant"(%x) <{constant = 3 : i1024}> : (!poly2_Q0to3) -> !poly2_Q0to3
  %mul_constant = rns.mul_constant %x, 3 : !p

  // CHECK-NEXT:   %components = rns.components %x3[1 to 3] : !poly3_Q0to3 -> !poly2_Q0to3
  // GENERIC-NEXT: %components = "rns.components"(%x3) <{start = 1 : i64, stop = 3 : i64}> : (!poly3_Q0to3) -> !poly2_Q0to3
  %components = rns.components %x3[1 to 3] : !p3 -> !p
  func.return
}

// CHECK-LABEL:  func.func @transforms
// GENERIC:      "func.func"() <{sym_name = "transforms"
func.func @transforms(%x: !p, %c: !coeff) {
  // CHECK-NEXT:   %ntt = rns.ntt %c : !poly2_Q0to3_coeff -> !poly2_Q0to3
  // GENERIC:      %ntt = "rns.ntt"(%c) : (!poly2_Q0to3_coeff) -> !poly2_Q0to3
  %ntt = rns.ntt %c : !coeff -> !p

  // CHECK-NEXT:   %intt = rns.intt %x : !poly2_Q0to3 -> !poly2_Q0to3_coeff
  // GENERIC-NEXT: %intt = "rns.intt"(%x) : (!poly2_Q0to3) -> !poly2_Q0to3_coeff
  %intt = rns.intt %x : !p -> !coeff

  // CHECK-NEXT:   %a = rns.automorphism %x, 5 : !poly2_Q0to3
  // GENERIC-NEXT: %a = "rns.automorphism"(%x) <{galois_element = 5 : i64}> : (!poly2_Q0to3) -> !poly2_Q0to3
  %a = rns.automorphism %x, 5 : !p

  // CHECK-NEXT:   %b = rns.automorphism %c, 15 : !poly2_Q0to3_coeff
  // GENERIC-NEXT: %b = "rns.automorphism"(%c) <{galois_element = 15 : i64}>
  %b = rns.automorphism %c, 15 : !coeff
  func.return
}

// CHECK-LABEL:  func.func @bases
// GENERIC:      "func.func"() <{sym_name = "bases"
func.func @bases(%x: !p, %c: !coeff, %top: !top, %low: !low, %digit: !raised, %key: !key) {
  // CHECK-NEXT:   %project = rns.project %c : !poly2_Q0to3_coeff -> !poly2_Q2_coeff
  // GENERIC:      %project = "rns.project"(%c) : (!poly2_Q0to3_coeff) -> !poly2_Q2_coeff
  %project = rns.project %c : !coeff -> !top

  // CHECK-NEXT:   %mod_up = rns.mod_up %top : !poly2_Q2_coeff -> !poly2_Q0to2_coeff
  // GENERIC-NEXT: %mod_up = "rns.mod_up"(%top) : (!poly2_Q2_coeff) -> !poly2_Q0to2_coeff
  %mod_up = rns.mod_up %top : !top -> !low_coeff

  // CHECK-NEXT:   %mod_down = rns.mod_down %x, %low : !poly2_Q0to3, !poly2_Q0to2
  // GENERIC-NEXT: %mod_down = "rns.mod_down"(%x, %low) : (!poly2_Q0to3, !poly2_Q0to2) -> !poly2_Q0to2
  %mod_down = rns.mod_down %x, %low : !p, !low

  // CHECK-NEXT:   %scale_up = rns.scale_up %low : !poly2_Q0to2 -> !poly2_Q0to3
  // GENERIC-NEXT: %scale_up = "rns.scale_up"(%low) : (!poly2_Q0to2) -> !poly2_Q0to3
  %scale_up = rns.scale_up %low : !low -> !p

  // CHECK-NEXT:   %product = rns.key_product %digit, %digit with %key : (!poly1_Q0to3_P0to2, !poly1_Q0to3_P0to2, !ckks.key<relinearization>) -> !poly2_Q0to3_P0to2
  // GENERIC-NEXT: %product = "rns.key_product"(%digit, %digit, %key) : (!poly1_Q0to3_P0to2, !poly1_Q0to3_P0to2, !ckks.key<relinearization>) -> !poly2_Q0to3_P0to2
  %product = rns.key_product %digit, %digit with %key : (!raised, !raised, !key) -> !raised2
  func.return
}
