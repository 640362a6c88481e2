// RUN: %opt %s -p rns-fuse-divisions | filecheck %s
// RUN: %opt %s -p rns-fuse-divisions --print-debuginfo | filecheck %s --check-prefix=LOC

!e2 = !rns.poly<basis = Q[0:3] P[0], components = 2, form = evaluation>
!q2 = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!q2c = !rns.poly<basis = Q[0:3], components = 2, form = coefficient>
!r2 = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!r2c = !rns.poly<basis = Q[0:2], components = 2, form = coefficient>
!p2 = !rns.poly<basis = P[0], components = 2, form = evaluation>
!p2c = !rns.poly<basis = P[0], components = 2, form = coefficient>
!l2 = !rns.poly<basis = Q[2], components = 2, form = evaluation>
!l2c = !rns.poly<basis = Q[2], components = 2, form = coefficient>

// What a relinearization and a rescale end with: two divisions become one.
// CHECK-LABEL: @relinearize_rescale
// CHECK-NEXT: %[[up:.*]] = rns.scale_up %u : {{.*}} -> !poly2_Q0to3_P0
// CHECK-NEXT: %[[sum:.*]] = rns.add %[[up]], %y
// CHECK-NEXT: %[[part:.*]] = rns.project %[[sum]] : {{.*}} -> !poly2_Q2_P0
// CHECK-NEXT: %[[coefficients:.*]] = rns.intt %[[part]]
// CHECK-NEXT: %[[converted:.*]] = rns.mod_up %[[coefficients]] : {{.*}} -> !poly2_Q0to2_coeff
// CHECK-NEXT: %[[remainder:.*]] = rns.ntt %[[converted]]
// CHECK-NEXT: %[[result:.*]] = rns.mod_down %[[sum]], %[[remainder]]
// CHECK-NEXT: func.return %[[result]]
// LOC: rns.scale_up {{.*}} loc("{{.*}}rns-fuse-divisions.mlir":37:
func.func @relinearize_rescale(%u: !q2, %y: !e2) -> !r2 {
  %0 = rns.project %y : !e2 -> !p2
  %1 = rns.intt %0 : !p2 -> !p2c
  %2 = rns.mod_up %1 : !p2c -> !q2c
  %3 = rns.ntt %2 : !q2c -> !q2
  %4 = rns.mod_down %y, %3 : !e2, !q2
  %5 = rns.add %u, %4 : (!q2, !q2) -> !q2
  %6 = rns.project %5 : !q2 -> !l2
  %7 = rns.intt %6 : !l2 -> !l2c
  %8 = rns.mod_up %7 : !l2c -> !r2c
  %9 = rns.ntt %8 : !r2c -> !r2

  %10 = rns.mod_down %5, %9 : !q2, !r2
  func.return %10 : !r2
}

// Without a summand between them nothing is scaled.
// CHECK-LABEL: @twice
// CHECK-NOT: rns.scale_up
// CHECK: rns.project %y : {{.*}} -> !poly2_Q2_P0
// CHECK: rns.mod_down
// CHECK-NOT: rns.mod_down
// CHECK: func.return
func.func @twice(%y: !e2) -> !r2 {
  %0 = rns.project %y : !e2 -> !p2
  %1 = rns.intt %0 : !p2 -> !p2c
  %2 = rns.mod_up %1 : !p2c -> !q2c
  %3 = rns.ntt %2 : !q2c -> !q2
  %4 = rns.mod_down %y, %3 : !e2, !q2
  %6 = rns.project %4 : !q2 -> !l2
  %7 = rns.intt %6 : !l2 -> !l2c
  %8 = rns.mod_up %7 : !l2c -> !r2c
  %9 = rns.ntt %8 : !r2c -> !r2
  %10 = rns.mod_down %4, %9 : !q2, !r2
  func.return %10 : !r2
}

// A value that is needed undivided too keeps its own division.
// CHECK-LABEL: @used_twice
// CHECK-NOT: rns.scale_up
// CHECK-COUNT-2: rns.mod_down
func.func @used_twice(%u: !q2, %y: !e2) -> (!r2, !q2) {
  %0 = rns.project %y : !e2 -> !p2
  %1 = rns.intt %0 : !p2 -> !p2c
  %2 = rns.mod_up %1 : !p2c -> !q2c
  %3 = rns.ntt %2 : !q2c -> !q2
  %4 = rns.mod_down %y, %3 : !e2, !q2
  %5 = rns.add %u, %4 : (!q2, !q2) -> !q2
  %6 = rns.project %5 : !q2 -> !l2
  %7 = rns.intt %6 : !l2 -> !l2c
  %8 = rns.mod_up %7 : !l2c -> !r2c
  %9 = rns.ntt %8 : !r2c -> !r2
  %10 = rns.mod_down %5, %9 : !q2, !r2
  func.return %10, %5 : !r2, !q2
}

// A remainder that comes from elsewhere is no division.
// CHECK-LABEL: @other_remainder
// CHECK-COUNT-2: rns.mod_down
func.func @other_remainder(%y: !e2, %r: !q2) -> !r2 {
  %4 = rns.mod_down %y, %r : !e2, !q2
  %6 = rns.project %4 : !q2 -> !l2
  %7 = rns.intt %6 : !l2 -> !l2c
  %8 = rns.mod_up %7 : !l2c -> !r2c
  %9 = rns.ntt %8 : !r2c -> !r2
  %10 = rns.mod_down %4, %9 : !q2, !r2
  func.return %10 : !r2
}
