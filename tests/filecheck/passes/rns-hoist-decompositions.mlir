// RUN: %opt %s -p rns-hoist-decompositions | filecheck %s
// RUN: %opt %s -p rns-hoist-decompositions --print-debuginfo | filecheck %s --check-prefix=LOC

!x = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!x1 = !rns.poly<basis = Q[0:2], components = 1, form = evaluation>
!c = !rns.poly<basis = Q[0:2], components = 1, form = coefficient>
!d = !rns.poly<basis = Q[0], components = 1, form = coefficient>
!u = !rns.poly<basis = Q[0:2] P[0], components = 1, form = coefficient>
!e = !rns.poly<basis = Q[0:2] P[0], components = 1, form = evaluation>

// Two rotations share one decomposition; each permutes the raised digit.
// CHECK-LABEL: @two
// CHECK-NEXT: %[[last:.*]] = rns.components %x[1 to 2]
// CHECK-NEXT: %[[coefficients:.*]] = rns.intt %[[last]]
// CHECK-NEXT: %[[digit:.*]] = rns.project %[[coefficients]]
// CHECK-NEXT: %[[raised:.*]] = rns.mod_up %[[digit]]
// CHECK-NEXT: %[[values:.*]] = rns.ntt %[[raised]]
// CHECK-NEXT: %[[a:.*]] = rns.automorphism %[[values]], 5
// CHECK-NEXT: %[[b:.*]] = rns.automorphism %[[values]], 25
// CHECK-NEXT: func.return %[[a]], %[[b]]
// LOC: rns.ntt {{.*}} loc("{{.*}}rns-hoist-decompositions.mlir":29:
func.func @two(%x: !x) -> (!e, !e) {
  %a0 = rns.automorphism %x, 5 : !x
  %a1 = rns.components %a0[1 to 2] : !x -> !x1
  %a2 = rns.intt %a1 : !x1 -> !c
  %a3 = rns.project %a2 : !c -> !d
  %a4 = rns.mod_up %a3 : !d -> !u

  %a5 = rns.ntt %a4 : !u -> !e
  %b0 = rns.automorphism %x, 25 : !x
  %b1 = rns.components %b0[1 to 2] : !x -> !x1
  %b2 = rns.intt %b1 : !x1 -> !c
  %b3 = rns.project %b2 : !c -> !d
  %b4 = rns.mod_up %b3 : !d -> !u
  %b5 = rns.ntt %b4 : !u -> !e
  func.return %a5, %b5 : !e, !e
}

// One rotation, or the same one twice, is left alone.
// CHECK-LABEL: @one
// CHECK-NEXT: rns.automorphism %x, 5
// CHECK-NEXT: rns.components
// CHECK-NEXT: rns.intt
// CHECK-NEXT: func.return
func.func @one(%x: !x) -> (!c, !c) {
  %a0 = rns.automorphism %x, 5 : !x
  %a1 = rns.components %a0[1 to 2] : !x -> !x1
  %a2 = rns.intt %a1 : !x1 -> !c
  %b0 = rns.automorphism %x, 5 : !x
  %b1 = rns.components %b0[1 to 2] : !x -> !x1
  %b2 = rns.intt %b1 : !x1 -> !c
  func.return %a2, %b2 : !c, !c
}

// What does not commute stays behind the automorphism, which it still needs.
// CHECK-LABEL: @product
// CHECK: %[[a:.*]] = rns.automorphism %x, 5
// CHECK: %[[b:.*]] = rns.automorphism %x, 25
// CHECK: rns.mul %[[a]], %[[b]]
func.func @product(%x: !x1) -> !x1 {
  %a = rns.automorphism %x, 5 : !x1
  %b = rns.automorphism %x, 25 : !x1
  %p = rns.mul %a, %b : (!x1, !x1) -> !x1
  func.return %p : !x1
}
