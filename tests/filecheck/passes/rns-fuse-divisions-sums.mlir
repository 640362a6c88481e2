// RUN: %opt %s -p "rns-fuse-divisions{sums=true}" | filecheck %s
// RUN: %opt %s -p "rns-fuse-divisions{sums=true}" --print-debuginfo | filecheck %s --check-prefix=LOC
// RUN: %opt %s -p rns-fuse-divisions | filecheck %s --check-prefix=OFF

!e2 = !rns.poly<basis = Q[0:3] P[0], components = 2, form = evaluation>
!q1 = !rns.poly<basis = Q[0:3], components = 1, form = evaluation>
!q2 = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!q2c = !rns.poly<basis = Q[0:3], components = 2, form = coefficient>
!r2 = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!r2c = !rns.poly<basis = Q[0:2], components = 2, form = coefficient>
!p2 = !rns.poly<basis = P[0], components = 2, form = evaluation>
!p2c = !rns.poly<basis = P[0], components = 2, form = coefficient>
!l2 = !rns.poly<basis = Q[2], components = 2, form = evaluation>
!l2c = !rns.poly<basis = Q[2], components = 2, form = coefficient>

// Two rotations and a value between them: they are divided as one sum.
// CHECK-LABEL: @rotations
// CHECK-NEXT: %[[sum:.*]] = rns.add %x, %y
// CHECK-NEXT: %[[part:.*]] = rns.project %[[sum]] : {{.*}} -> !poly2_P0
// CHECK-NEXT: %[[coefficients:.*]] = rns.intt %[[part]]
// CHECK-NEXT: %[[converted:.*]] = rns.mod_up %[[coefficients]]
// CHECK-NEXT: %[[remainder:.*]] = rns.ntt %[[converted]]
// CHECK-NEXT: %[[quotient:.*]] = rns.mod_down %[[sum]], %[[remainder]]
// CHECK-NEXT: %[[short:.*]] = rns.add %a, %b : (!poly1_Q0to3, !poly1_Q0to3) -> !poly1_Q0to3
// CHECK-NEXT: %[[rest:.*]] = rns.add %[[short]], %u
// CHECK-NEXT: %[[result:.*]] = rns.add %[[quotient]], %[[rest]]
// CHECK-NEXT: func.return %[[result]]
// LOC-LABEL: @rotations
// LOC: rns.mod_down {{.*}} loc("{{.*}}rns-fuse-divisions-sums.mlir":[[# @LINE + 21]]:
// OFF-LABEL: @rotations
// OFF-COUNT-2: rns.mod_down
// OFF: func.return
func.func @rotations(%x: !e2, %y: !e2, %u: !q2, %a: !q1, %b: !q1) -> !q2 {
  %x0 = rns.project %x : !e2 -> !p2
  %x1 = rns.intt %x0 : !p2 -> !p2c
  %x2 = rns.mod_up %x1 : !p2c -> !q2c
  %x3 = rns.ntt %x2 : !q2c -> !q2
  %x4 = rns.mod_down %x, %x3 : !e2, !q2
  %x5 = rns.add %x4, %a : (!q2, !q1) -> !q2
  %t = rns.add %x5, %u : (!q2, !q2) -> !q2
  %y0 = rns.project %y : !e2 -> !p2
  %y1 = rns.intt %y0 : !p2 -> !p2c
  %y2 = rns.mod_up %y1 : !p2c -> !q2c
  %y3 = rns.ntt %y2 : !q2c -> !q2
  %y4 = rns.mod_down %y, %y3 : !e2, !q2
  %y5 = rns.add %y4, %b : (!q2, !q1) -> !q2


  // Here.
  %r = rns.add %t, %y5 : (!q2, !q2) -> !q2
  func.return %r : !q2
}

// A rescale of the sum takes part in the one division.
// CHECK-LABEL: @rescaled
// CHECK: rns.project %{{.*}} : {{.*}} -> !poly2_Q2_P0
// CHECK-COUNT-1: rns.mod_down
// CHECK-NOT: rns.mod_down
// CHECK: func.return
func.func @rescaled(%x: !e2, %y: !e2, %a: !q1) -> !r2 {
  %x0 = rns.project %x : !e2 -> !p2
  %x1 = rns.intt %x0 : !p2 -> !p2c
  %x2 = rns.mod_up %x1 : !p2c -> !q2c
  %x3 = rns.ntt %x2 : !q2c -> !q2
  %x4 = rns.mod_down %x, %x3 : !e2, !q2
  %x5 = rns.add %x4, %a : (!q2, !q1) -> !q2
  %y0 = rns.project %y : !e2 -> !p2
  %y1 = rns.intt %y0 : !p2 -> !p2c
  %y2 = rns.mod_up %y1 : !p2c -> !q2c
  %y3 = rns.ntt %y2 : !q2c -> !q2
  %y4 = rns.mod_down %y, %y3 : !e2, !q2
  %s = rns.add %x5, %y4 : (!q2, !q2) -> !q2
  %0 = rns.project %s : !q2 -> !l2
  %1 = rns.intt %0 : !l2 -> !l2c
  %2 = rns.mod_up %1 : !l2c -> !r2c
  %3 = rns.ntt %2 : !r2c -> !r2
  %4 = rns.mod_down %s, %3 : !q2, !r2
  func.return %4 : !r2
}

// What is read by itself too keeps its division, and so does what records how it runs.
// CHECK-LABEL: @kept
// CHECK-COUNT-3: rns.mod_down
// CHECK: func.return
func.func @kept(%x: !e2, %y: !e2, %z: !e2) -> (!q2, !q2) {
  %x0 = rns.project %x : !e2 -> !p2
  %x1 = rns.intt %x0 : !p2 -> !p2c
  %x2 = rns.mod_up %x1 : !p2c -> !q2c
  %x3 = rns.ntt %x2 : !q2c -> !q2
  %x4 = rns.mod_down %x, %x3 : !e2, !q2
  %y0 = rns.project %y : !e2 -> !p2
  %y1 = rns.intt %y0 : !p2 -> !p2c
  %y2 = rns.mod_up %y1 : !p2c -> !q2c
  %y3 = rns.ntt %y2 : !q2c -> !q2
  %y4 = rns.mod_down %y, %y3 : !e2, !q2
  %z0 = rns.project %z : !e2 -> !p2
  %z1 = rns.intt %z0 : !p2 -> !p2c
  %z2 = rns.mod_up %z1 : !p2c -> !q2c
  %z3 = rns.ntt %z2 : !q2c -> !q2
  %z4 = rns.mod_down %z, %z3 {fhelium.implementation = "torch-rns-mod-down"} : !e2, !q2
  %s = rns.add %x4, %y4 : (!q2, !q2) -> !q2
  %t = rns.add %s, %z4 : (!q2, !q2) -> !q2
  func.return %t, %x4 : !q2, !q2
}

// A sum outside of a loop is not made again in each of its turns.
// CHECK-LABEL: @loop
// CHECK: rns.mod_down
// CHECK: scf.for
// CHECK: rns.mod_down
// CHECK: scf.yield
func.func @loop(%x: !e2, %y: !e2, %z: !e2, %i: index, %n: index) -> !q2 {
  %x0 = rns.project %x : !e2 -> !p2
  %x1 = rns.intt %x0 : !p2 -> !p2c
  %x2 = rns.mod_up %x1 : !p2c -> !q2c
  %x3 = rns.ntt %x2 : !q2c -> !q2
  %x4 = rns.mod_down %x, %x3 : !e2, !q2
  %y0 = rns.project %y : !e2 -> !p2
  %y1 = rns.intt %y0 : !p2 -> !p2c
  %y2 = rns.mod_up %y1 : !p2c -> !q2c
  %y3 = rns.ntt %y2 : !q2c -> !q2
  %y4 = rns.mod_down %y, %y3 : !e2, !q2
  %s = rns.add %x4, %y4 : (!q2, !q2) -> !q2
  %r = scf.for %j = %i to %n step %i iter_args(%a = %y3) -> (!q2) {
    %z0 = rns.project %z : !e2 -> !p2
    %z1 = rns.intt %z0 : !p2 -> !p2c
    %z2 = rns.mod_up %z1 : !p2c -> !q2c
    %z3 = rns.ntt %z2 : !q2c -> !q2
    %z4 = rns.mod_down %z, %z3 : !e2, !q2
    %t = rns.add %s, %z4 : (!q2, !q2) -> !q2
    scf.yield %t : !q2
  }
  func.return %r : !q2
}
