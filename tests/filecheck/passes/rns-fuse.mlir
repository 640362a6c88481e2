// RUN: %opt %s -p rns-fuse | filecheck %s
// RUN: %opt %s -p rns-fuse,rns-fuse | filecheck %s
// RUN: %opt %s -p rns-fuse,canonicalize,cse,dce | filecheck %s
// RUN: %opt %s -p rns-fuse --print-debuginfo | filecheck %s --check-prefix=LOC

!x = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!x1 = !rns.poly<basis = Q[0:2], components = 1, form = evaluation>
!x3 = !rns.poly<basis = Q[0:2], components = 3, form = evaluation>
!c = !rns.poly<basis = Q[0:2], components = 2, form = coefficient>

// Six ops in a row become one, in the place of the last.
// CHECK-LABEL: @chain
// CHECK-NEXT:  %f = rns.fused (%0 = %x, %1 = %p, %2 = %y) : ({{.*}}) -> !poly3_Q0to2 {
// CHECK-NEXT:    %a = rns.mul %0, %1
// CHECK-NEXT:    %b = rns.add %a, %2
// CHECK-NEXT:    %c = rns.negate %b
// CHECK-NEXT:    %d = rns.mul_constant %c, 7
// CHECK-NEXT:    %e = rns.add_constant %d, -1
// CHECK-NEXT:    %3 = rns.mul %e, %2
// CHECK-NEXT:    rns.yield %3 : !poly3_Q0to2
// CHECK-NEXT:  }
// CHECK-NEXT:  func.return %f
// LOC:         rns.negate {{.*}} loc("{{.*}}rns-fuse.mlir":28:
// LOC:         rns.yield {{.*}} loc("{{.*}}rns-fuse.mlir":31:
func.func @chain(%x: !x, %y: !x, %p : !x1) -> !x3 {
  %a = rns.mul %x, %p : (!x, !x1) -> !x
  %b = rns.add %a, %y : (!x, !x) -> !x
  %c = rns.negate %b : !x
  %d = rns.mul_constant %c, 7 : !x
  %e = rns.add_constant %d, -1 : !x
  %f = rns.mul %e, %y : (!x, !x) -> !x3
  func.return %f : !x3
}

// What others use as well is a result, and nothing is computed twice.
// CHECK-LABEL: @several_results
// CHECK-NEXT:  %a, %c = rns.fused (%0 = %x, %1 = %y)
// CHECK-NEXT:    %2 = rns.add %0, %1
// CHECK-NEXT:    %b = rns.negate %2
// CHECK-NEXT:    %3 = rns.sub %b, %0
// CHECK-NEXT:    rns.yield %2, %3
// CHECK-NEXT:  }
// CHECK-NEXT:  %i = rns.intt %a
// CHECK-NEXT:  func.return %i, %c
func.func @several_results(%x: !x, %y: !x) -> (!c, !x) {
  %a = rns.add %x, %y : (!x, !x) -> !x
  %b = rns.negate %a : !x
  %c = rns.sub %b, %x : (!x, !x) -> !x
  %i = rns.intt %a : !x -> !c
  func.return %i, %c : !c, !x
}

// A value with two users that meet again, in a group that two chains make.
// CHECK-LABEL: @diamond
// CHECK-NEXT:  rns.fused (%0 = %x, %1 = %y)
// CHECK-NEXT:    rns.square
// CHECK-NEXT:    rns.mul
// CHECK-NEXT:    rns.negate
// CHECK-NEXT:    rns.mul_constant
// CHECK-NEXT:    rns.sub
// CHECK-NEXT:    rns.yield
// CHECK-NEXT:  }
// CHECK-NEXT:  func.return
func.func @diamond(%x: !x, %y: !x) -> !x3 {
  %a = rns.square %x : !x -> !x3
  %b = rns.mul %x, %y : (!x, !x) -> !x3
  %c = rns.negate %a : !x3
  %d = rns.mul_constant %b, 2 : !x3
  %e = rns.sub %c, %d : (!x3, !x3) -> !x3
  func.return %e : !x3
}

// Automorphisms begin a group: they fetch words of its operands, not of what it makes.
// CHECK-LABEL: @rotations
// CHECK-NEXT:  %s = rns.fused (%0 = %x)
// CHECK-NEXT:    rns.automorphism %0, 5
// CHECK-NEXT:    rns.add
// CHECK-NEXT:    rns.yield
// CHECK-NEXT:  }
// CHECK-NEXT:  rns.fused (%[[s:.*]] = %s)
// CHECK-NEXT:    rns.automorphism %[[s]], 25
// CHECK-NEXT:    rns.add
// CHECK-NEXT:    rns.yield
// CHECK-NEXT:  }
func.func @rotations(%x: !x) -> !x {
  %r = rns.automorphism %x, 5 : !x
  %s = rns.add %r, %x : (!x, !x) -> !x
  %t = rns.automorphism %s, 25 : !x
  %u = rns.add %t, %s : (!x, !x) -> !x
  func.return %u : !x
}

// Coefficient form has sums and products by constants; sums of two and three components are one.
// CHECK-LABEL: @coefficients
// CHECK:       rns.fused
// CHECK-NEXT:    rns.mul_constant
// CHECK-NEXT:    rns.sub
// CHECK-LABEL: @components
// CHECK:       rns.fused (%{{.*}}) : (!poly2_Q0to2, !poly1_Q0to2, !poly3_Q0to2) -> !poly3_Q0to2
func.func @coefficients(%x: !c) -> !c {
  %a = rns.mul_constant %x, 3 : !c
  %b = rns.sub %a, %x : (!c, !c) -> !c
  func.return %b : !c
}
func.func @components(%x: !x, %y: !x3, %w: !x1) -> !x3 {
  %a = rns.weighted_sum %x, %x by %w, %w : (!x, !x, !x1, !x1) -> !x
  %b = rns.add %a, %y : (!x, !x3) -> !x3
  func.return %b : !x3
}

// Loops and branches have groups of their own; a use inside one is a use outside the group.
// CHECK-LABEL: @loop
// CHECK-NEXT:  %a, %b = rns.fused
// CHECK:       scf.for
// CHECK-NEXT:    rns.fused (%{{.*}} = %v, %{{.*}} = %a)
// CHECK:         scf.yield
// CHECK-NEXT:  }
// CHECK-NEXT:  %d = rns.add %r, %b
func.func @loop(%x: !x, %lb: index, %ub: index, %step: index) -> !x {
  %a = rns.negate %x : !x
  %b = rns.add %a, %x : (!x, !x) -> !x
  %r = scf.for %i = %lb to %ub step %step iter_args(%v = %b) -> (!x) {
    %m = rns.add %v, %a : (!x, !x) -> !x
    %n = rns.negate %m : !x
    scf.yield %n : !x
  }
  %d = rns.add %r, %b : (!x, !x) -> !x
  func.return %d : !x
}
