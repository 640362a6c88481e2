// RUN: %opt %s -p rns-fuse-divisions,rns-hoist-decompositions | filecheck %s

// Ops that record how they run are neither fused nor moved.

!e2 = !rns.poly<basis = Q[0:3] P[0], components = 2, form = evaluation>
!q2 = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!q2c = !rns.poly<basis = Q[0:3], components = 2, form = coefficient>
!r2 = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!r2c = !rns.poly<basis = Q[0:2], components = 2, form = coefficient>
!p2 = !rns.poly<basis = P[0], components = 2, form = evaluation>
!p2c = !rns.poly<basis = P[0], components = 2, form = coefficient>
!l2 = !rns.poly<basis = Q[2], components = 2, form = evaluation>
!l2c = !rns.poly<basis = Q[2], components = 2, form = coefficient>

// CHECK-LABEL: @first_division
// CHECK:       rns.mod_down %y, %{{.*}} {fhelium.implementation = "mine"}
// CHECK:       rns.mod_down
func.func @first_division(%y: !e2) -> !r2 {
  %0 = rns.project %y : !e2 -> !p2
  %1 = rns.intt %0 : !p2 -> !p2c
  %2 = rns.mod_up %1 : !p2c -> !q2c
  %3 = rns.ntt %2 : !q2c -> !q2
  %4 = rns.mod_down %y, %3 {fhelium.implementation = "mine"} : !e2, !q2
  %5 = rns.project %4 : !q2 -> !l2
  %6 = rns.intt %5 : !l2 -> !l2c
  %7 = rns.mod_up %6 : !l2c -> !r2c
  %8 = rns.ntt %7 : !r2c -> !r2
  %9 = rns.mod_down %4, %8 : !q2, !r2
  func.return %9 : !r2
}

// CHECK-LABEL: @second_division
// CHECK:       rns.mod_down %y
// CHECK:       rns.mod_down %{{.*}}, %{{.*}} {fhelium.in_place}
func.func @second_division(%y: !e2) -> !r2 {
  %0 = rns.project %y : !e2 -> !p2
  %1 = rns.intt %0 : !p2 -> !p2c
  %2 = rns.mod_up %1 : !p2c -> !q2c
  %3 = rns.ntt %2 : !q2c -> !q2
  %4 = rns.mod_down %y, %3 : !e2, !q2
  %5 = rns.project %4 : !q2 -> !l2
  %6 = rns.intt %5 : !l2 -> !l2c
  %7 = rns.mod_up %6 : !l2c -> !r2c
  %8 = rns.ntt %7 : !r2c -> !r2
  %9 = rns.mod_down %4, %8 {fhelium.in_place} : !q2, !r2
  func.return %9 : !r2
}

// CHECK-LABEL: @project_step
// CHECK:       rns.mod_down
// CHECK:       rns.project %{{.*}} {fhelium.implementation = "mine"}
// CHECK:       rns.mod_down
func.func @project_step(%y: !e2) -> !r2 {
  %0 = rns.project %y : !e2 -> !p2
  %1 = rns.intt %0 : !p2 -> !p2c
  %2 = rns.mod_up %1 : !p2c -> !q2c
  %3 = rns.ntt %2 : !q2c -> !q2
  %4 = rns.mod_down %y, %3 : !e2, !q2
  %5 = rns.project %4 {fhelium.implementation = "mine"} : !q2 -> !l2
  %6 = rns.intt %5 : !l2 -> !l2c
  %7 = rns.mod_up %6 : !l2c -> !r2c
  %8 = rns.ntt %7 : !r2c -> !r2
  %9 = rns.mod_down %4, %8 : !q2, !r2
  func.return %9 : !r2
}

// CHECK-LABEL: @transform_step
// CHECK:       rns.mod_down
// CHECK:       rns.ntt %{{.*}} {fhelium.implementation = "mine"}
// CHECK:       rns.mod_down
func.func @transform_step(%y: !e2) -> !r2 {
  %0 = rns.project %y : !e2 -> !p2
  %1 = rns.intt %0 : !p2 -> !p2c
  %2 = rns.mod_up %1 : !p2c -> !q2c
  %3 = rns.ntt %2 : !q2c -> !q2
  %4 = rns.mod_down %y, %3 : !e2, !q2
  %5 = rns.project %4 : !q2 -> !l2
  %6 = rns.intt %5 : !l2 -> !l2c
  %7 = rns.mod_up %6 : !l2c -> !r2c
  %8 = rns.ntt %7 {fhelium.implementation = "mine"} : !r2c -> !r2
  %9 = rns.mod_down %4, %8 : !q2, !r2
  func.return %9 : !r2
}

// CHECK-LABEL: @sum
// CHECK-NOT:   rns.scale_up
// CHECK:       rns.add %u, %{{.*}} {fhelium.implementation = "mine"}
func.func @sum(%u: !q2, %y: !e2) -> !r2 {
  %0 = rns.project %y : !e2 -> !p2
  %1 = rns.intt %0 : !p2 -> !p2c
  %2 = rns.mod_up %1 : !p2c -> !q2c
  %3 = rns.ntt %2 : !q2c -> !q2
  %4 = rns.mod_down %y, %3 : !e2, !q2
  %5 = rns.add %u, %4 {fhelium.implementation = "mine"} : (!q2, !q2) -> !q2
  %6 = rns.project %5 : !q2 -> !l2
  %7 = rns.intt %6 : !l2 -> !l2c
  %8 = rns.mod_up %7 : !l2c -> !r2c
  %9 = rns.ntt %8 : !r2c -> !r2
  %10 = rns.mod_down %5, %9 : !q2, !r2
  func.return %10 : !r2
}

// CHECK-LABEL: @automorphisms
// CHECK:       %a = rns.automorphism %x, 5 {fhelium.implementation = "mine"}
// CHECK-NEXT:  %c = rns.intt %a
// CHECK-NEXT:  %b = rns.automorphism %x, 25
// CHECK-NEXT:  %d = rns.intt %b {fhelium.implementation = "mine"}
// CHECK-NEXT:  func.return %c, %d
func.func @automorphisms(%x: !q2) -> (!q2c, !q2c) {
  %a = rns.automorphism %x, 5 {fhelium.implementation = "mine"} : !q2
  %c = rns.intt %a : !q2 -> !q2c
  %b = rns.automorphism %x, 25 : !q2
  %d = rns.intt %b {fhelium.implementation = "mine"} : !q2 -> !q2c
  func.return %c, %d : !q2c, !q2c
}
