// RUN: %opt %s -p rns-merge-transforms | filecheck %s
// RUN: %opt %s -p rns-merge-transforms --print-debuginfo | filecheck %s --check-prefix=LOC

!e = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!c = !rns.poly<basis = Q[0:3], components = 2, form = coefficient>
!e1 = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!c1 = !rns.poly<basis = Q[0:2], components = 2, form = coefficient>

// A chain of linear ops stays in evaluation form.
// CHECK-LABEL: @chain
// CHECK-NEXT: %[[negated:.*]] = rns.negate %x
// CHECK-NEXT: %[[tripled:.*]] = rns.mul_constant %[[negated]], 3
// CHECK-NEXT: %[[moved:.*]] = rns.automorphism %[[tripled]], 5
// CHECK-NEXT: func.return %[[moved]]
func.func @chain(%x: !e) -> !e {
  %0 = rns.intt %x : !e -> !c
  %1 = rns.negate %0 : !c
  %2 = rns.mul_constant %1, 3 : !c
  %3 = rns.automorphism %2, 5 : !c
  %4 = rns.ntt %3 : !c -> !e
  func.return %4 : !e
}

// One side in the other form: its inverse transform goes.
// CHECK-LABEL: @mixed_sum
// CHECK-NEXT: %[[y:.*]] = rns.ntt %y
// CHECK-NEXT: %[[sum:.*]] = rns.sub %x, %[[y]]
// CHECK-NEXT: func.return %[[sum]]
func.func @mixed_sum(%x: !e, %y: !c) -> !e {
  %0 = rns.intt %x : !e -> !c
  %1 = rns.sub %0, %y : (!c, !c) -> !c
  %2 = rns.ntt %1 : !c -> !e
  func.return %2 : !e
}

// A sum is formed before its transform.
// CHECK-LABEL: @sum
// CHECK-NEXT: %[[sum:.*]] = rns.add %x, %y
// CHECK-NEXT: %[[values:.*]] = rns.ntt %[[sum]]
// CHECK-NEXT: func.return %[[values]]
// LOC: rns.add {{.*}} loc("{{.*}}rns-merge-transforms.mlir":46:
func.func @sum(%x: !c, %y: !c) -> !e {
  %0 = rns.ntt %x : !c -> !e
  %1 = rns.ntt %y : !c -> !e

  %2 = rns.add %0, %1 : (!e, !e) -> !e
  func.return %2 : !e
}

// Limbs that are dropped are not transformed.
// CHECK-LABEL: @project
// CHECK-NEXT: %[[part:.*]] = rns.project %x
// CHECK-NEXT: %[[values:.*]] = rns.ntt %[[part]] : !poly2_Q0to2_coeff -> !poly2_Q0to2
// CHECK-NEXT: func.return %[[values]]
func.func @project(%x: !c) -> !e1 {
  %0 = rns.ntt %x : !c -> !e
  %1 = rns.project %0 : !e -> !e1
  func.return %1 : !e1
}

// Transforms whose results are needed elsewhere stay: no rule adds one.
// CHECK-LABEL: @needed
// CHECK-COUNT-2: rns.ntt
// CHECK-NOT: rns.ntt
// CHECK: func.return
func.func @needed(%x: !c, %y: !c) -> (!e, !e, !e1) {
  %0 = rns.ntt %x : !c -> !e
  %1 = rns.ntt %y : !c -> !e
  %2 = rns.add %0, %1 : (!e, !e) -> !e
  %3 = rns.project %1 : !e -> !e1
  func.return %0, %2, %3 : !e, !e, !e1
}

// A linear op with two users keeps its round trip on one side only.
// CHECK-LABEL: @linear_used_twice
// CHECK-NEXT: rns.intt
// CHECK-NEXT: rns.negate
// CHECK-NEXT: rns.ntt
func.func @linear_used_twice(%x: !e) -> (!e, !c) {
  %0 = rns.intt %x : !e -> !c
  %1 = rns.negate %0 : !c
  %2 = rns.ntt %1 : !c -> !e
  func.return %2, %1 : !e, !c
}
