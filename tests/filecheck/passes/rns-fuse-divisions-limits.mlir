// RUN: %opt %s -p rns-fuse-divisions | filecheck %s

// What looks like two divisions in a row and is not.

!e2 = !rns.poly<basis = Q[0:3] P[0], components = 2, form = evaluation>
!q2 = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!q2c = !rns.poly<basis = Q[0:3], components = 2, form = coefficient>
!r2 = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!r2c = !rns.poly<basis = Q[0:2], components = 2, form = coefficient>
!p2 = !rns.poly<basis = P[0], components = 2, form = evaluation>
!p2c = !rns.poly<basis = P[0], components = 2, form = coefficient>
!l2 = !rns.poly<basis = Q[2], components = 2, form = evaluation>
!l2c = !rns.poly<basis = Q[2], components = 2, form = coefficient>

// The remainder of another value.
// CHECK-LABEL:   @another_value
// CHECK-COUNT-2: rns.mod_down
func.func @another_value(%y: !e2, %z: !e2) -> !r2 {
  %0 = rns.project %z : !e2 -> !p2
  %1 = rns.intt %0 : !p2 -> !p2c
  %2 = rns.mod_up %1 : !p2c -> !q2c
  %3 = rns.ntt %2 : !q2c -> !q2
  %4 = rns.mod_down %y, %3 : !e2, !q2
  %5 = rns.project %4 : !q2 -> !l2
  %6 = rns.intt %5 : !l2 -> !l2c
  %7 = rns.mod_up %6 : !l2c -> !r2c
  %8 = rns.ntt %7 : !r2c -> !r2
  %9 = rns.mod_down %4, %8 : !q2, !r2
  func.return %9 : !r2
}

// The remainder by other limbs than those that go.
// CHECK-LABEL:   @other_limbs
// CHECK-COUNT-2: rns.mod_down
func.func @other_limbs(%y: !e2) -> !r2 {
  %0 = rns.project %y : !e2 -> !l2
  %1 = rns.intt %0 : !l2 -> !l2c
  %2 = rns.mod_up %1 : !l2c -> !q2c
  %3 = rns.ntt %2 : !q2c -> !q2
  %4 = rns.mod_down %y, %3 : !e2, !q2
  %5 = rns.project %4 : !q2 -> !l2
  %6 = rns.intt %5 : !l2 -> !l2c
  %7 = rns.mod_up %6 : !l2c -> !r2c
  %8 = rns.ntt %7 : !r2c -> !r2
  %9 = rns.mod_down %4, %8 : !q2, !r2
  func.return %9 : !r2
}

// A summand whose remainder comes from elsewhere.
// CHECK-LABEL:   @summand
// CHECK-NOT:     rns.scale_up
// CHECK-COUNT-2: rns.mod_down
func.func @summand(%y: !e2, %r: !q2, %u: !q2) -> !r2 {
  %0 = rns.mod_down %y, %r : !e2, !q2
  %4 = rns.add %u, %0 : (!q2, !q2) -> !q2
  %5 = rns.project %4 : !q2 -> !l2
  %6 = rns.intt %5 : !l2 -> !l2c
  %7 = rns.mod_up %6 : !l2c -> !r2c
  %8 = rns.ntt %7 : !r2c -> !r2
  %9 = rns.mod_down %4, %8 : !q2, !r2
  func.return %9 : !r2
}

// A quotient that is needed by itself too.
// CHECK-LABEL:   @shared_quotient
// CHECK-NOT:     rns.scale_up
// CHECK-COUNT-2: rns.mod_down
func.func @shared_quotient(%y: !e2, %u: !q2) -> (!r2, !q2) {
  %0 = rns.project %y : !e2 -> !p2
  %1 = rns.intt %0 : !p2 -> !p2c
  %2 = rns.mod_up %1 : !p2c -> !q2c
  %3 = rns.ntt %2 : !q2c -> !q2
  %q = rns.mod_down %y, %3 : !e2, !q2
  %4 = rns.add %u, %q : (!q2, !q2) -> !q2
  %5 = rns.project %4 : !q2 -> !l2
  %6 = rns.intt %5 : !l2 -> !l2c
  %7 = rns.mod_up %6 : !l2c -> !r2c
  %8 = rns.ntt %7 : !r2c -> !r2
  %9 = rns.mod_down %4, %8 : !q2, !r2
  func.return %9, %q : !r2, !q2
}

// Limbs of the quotient that are needed by themselves too.
// CHECK-LABEL:   @shared_limbs
// CHECK:         rns.mod_down %y, %3
// CHECK:         rns.mod_down %4, %8
func.func @shared_limbs(%y: !e2) -> (!r2, !l2) {
  %0 = rns.project %y : !e2 -> !p2
  %1 = rns.intt %0 : !p2 -> !p2c
  %2 = rns.mod_up %1 : !p2c -> !q2c
  %3 = rns.ntt %2 : !q2c -> !q2
  %4 = rns.mod_down %y, %3 : !e2, !q2
  %5 = rns.project %4 : !q2 -> !l2
  %6 = rns.intt %5 : !l2 -> !l2c
  %7 = rns.mod_up %6 : !l2c -> !r2c
  %8 = rns.ntt %7 : !r2c -> !r2
  %9 = rns.mod_down %4, %8 : !q2, !r2
  func.return %9, %5 : !r2, !l2
}
