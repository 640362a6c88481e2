// RUN: %opt %s -p rns-fuse | filecheck %s

!x = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!x1 = !rns.poly<basis = Q[0:2], components = 1, form = evaluation>
!x3 = !rns.poly<basis = Q[0:2], components = 3, form = evaluation>
!low = !rns.poly<basis = Q[0], components = 2, form = evaluation>
!c = !rns.poly<basis = Q[0:2], components = 2, form = coefficient>
!s = !rns.poly<basis = Q[0], components = 9, form = evaluation>

// Ops by themselves stay, though they share an operand.
// CHECK-LABEL: @alone
// CHECK-NEXT:  rns.add
// CHECK-NEXT:  rns.sub
// CHECK-NEXT:  func.return
func.func @alone(%x: !x, %y: !x) -> (!x, !x) {
  %a = rns.add %x, %y : (!x, !x) -> !x
  %b = rns.sub %x, %y : (!x, !x) -> !x
  func.return %a, %b : !x, !x
}

// Another basis and another form are behind ops that are not pointwise.
// CHECK-LABEL: @bases
// CHECK-NOT:   rns.fused
// CHECK:       func.return
func.func @bases(%x: !x) -> (!low, !c) {
  %a = rns.negate %x : !x
  %b = rns.project %a : !x -> !low
  %d = rns.negate %b : !low
  %e = rns.intt %a : !x -> !c
  %f = rns.negate %e : !c
  func.return %d, %f : !low, !c
}

// A constant in coefficient form goes to one coefficient, and an automorphism changes signs.
// CHECK-LABEL: @coefficients
// CHECK-NOT:   rns.fused
// CHECK:       func.return
func.func @coefficients(%x: !c) -> (!c, !c) {
  %a = rns.negate %x : !c
  %b = rns.add_constant %a, 5 : !c
  %d = rns.automorphism %x, 5 : !c
  %e = rns.negate %d : !c
  func.return %b, %e : !c, !c
}

// Ops that record how they run stay as they are.
// CHECK-LABEL: @assigned
// CHECK-NEXT:  rns.negate %x {fhelium.implementation = "mine"}
// CHECK-NEXT:  rns.add
// CHECK-NEXT:  rns.negate %{{.*}} {fhelium.in_place}
// CHECK-NEXT:  rns.mul_constant
// CHECK-NEXT:  func.return
func.func @assigned(%x: !x) -> !x {
  %a = rns.negate %x {fhelium.implementation = "mine"} : !x
  %b = rns.add %a, %x : (!x, !x) -> !x
  %d = rns.negate %b {fhelium.in_place} : !x
  %e = rns.mul_constant %d, 3 : !x
  func.return %e : !x
}

// A user outside ends the group: the next op would come behind it, and so would the result.
// CHECK-LABEL: @used_between
// CHECK-NEXT:  %b = rns.fused
// CHECK:       %low = rns.project %b
// CHECK-NEXT:  %d = rns.negate %b
// CHECK-NEXT:  func.return
func.func @used_between(%x: !x) -> (!low, !x) {
  %a = rns.negate %x : !x
  %b = rns.add %a, %x : (!x, !x) -> !x
  %low = rns.project %b : !x -> !low
  %d = rns.negate %b : !x
  func.return %low, %d : !low, !x
}

// The second group depends on the first through an op outside: they do not become one.
// CHECK-LABEL: @around
// CHECK-NEXT:  rns.fused
// CHECK:       rns.ntt
// CHECK-NEXT:  rns.fused
// CHECK:       func.return
func.func @around(%x: !x) -> !x {
  %a = rns.negate %x : !x
  %b = rns.mul_constant %a, 5 : !x
  %i = rns.intt %b : !x -> !c
  %n = rns.ntt %i : !c -> !x
  %d = rns.add %n, %b : (!x, !x) -> !x
  %e = rns.negate %d : !x
  func.return %e : !x
}

// An operand is overwritten between two ops: the first one must not move behind that.
// CHECK-LABEL: @overwritten
// CHECK-NEXT:  rns.add
// CHECK-NEXT:  rns.negate %t {fhelium.in_place}
// CHECK-NEXT:  rns.sub
// CHECK-NEXT:  func.return
func.func @overwritten(%x: !x, %t: !x) -> (!x, !x) {
  %a = rns.add %x, %t : (!x, !x) -> !x
  %b = rns.negate %t {fhelium.in_place} : !x
  %d = rns.sub %a, %x : (!x, !x) -> !x
  func.return %b, %d : !x, !x
}

// Nor across a call, which may do that too.
// CHECK-LABEL: @called
// CHECK-NEXT:  rns.negate
// CHECK-NEXT:  func.call
// CHECK-NEXT:  rns.add
func.func @called(%x: !x) -> (!x, !x) {
  %a = rns.negate %x : !x
  %b = func.call @assigned(%x) : (!x) -> !x
  %d = rns.add %a, %x : (!x, !x) -> !x
  func.return %b, %d : !x, !x
}

// What depends on materials alone is computed once for all runs, outside of any group.
// CHECK-LABEL: @materials
// CHECK-NEXT:  fhelium.material
// CHECK-NEXT:  rns.negate
// CHECK-NEXT:  rns.square
// CHECK-NEXT:  rns.fused (%0 = %x, %1 = %q)
// CHECK-NEXT:    rns.mul %0, %1
// CHECK-NEXT:    rns.add
func.func @materials(%x: !x) -> !x {
  %w = fhelium.material @w : !x1
  %p = rns.negate %w : !x1
  %q = rns.square %p : !x1 -> !x1
  %a = rns.mul %x, %q : (!x, !x1) -> !x
  %b = rns.add %a, %x : (!x, !x) -> !x
  func.return %b : !x
}

// Values without users are none of a group.
// CHECK-LABEL: @unused
// CHECK-NEXT:  rns.negate
// CHECK-NEXT:  rns.add
// CHECK-NEXT:  func.return
func.func @unused(%x: !x) -> !x {
  %a = rns.negate %x : !x
  %b = rns.add %a, %x : (!x, !x) -> !x
  func.return %a : !x
}

// A group makes 64 values of one component at most: the seventh sum of nine of them ends it.
// CHECK-LABEL: @long
// CHECK-NEXT:  %g = rns.fused (%0 = %x)
// CHECK:         %f = rns.negate
// CHECK-NEXT:    %1 = rns.negate %f
// CHECK-NEXT:    rns.yield
// CHECK-NEXT:  }
// CHECK-NEXT:  %i = rns.fused (%2 = %g)
func.func @long(%x: !s) -> !s {
  %a = rns.negate %x : !s
  %b = rns.negate %a : !s
  %c = rns.negate %b : !s
  %d = rns.negate %c : !s
  %e = rns.negate %d : !s
  %f = rns.negate %e : !s
  %g = rns.negate %f : !s
  %h = rns.negate %g : !s
  %i = rns.negate %h : !s
  func.return %i : !s
}

// The combine region of a collective stays as it is: one that is fused could not be cut.
// CHECK-LABEL: @collective
// CHECK:       combine {
// CHECK-NEXT:  ^bb
// CHECK-NEXT:    rns.negate
// CHECK-NEXT:    rns.add
func.func @collective(%x: !x) -> !x {
  %group = fhelium.resource @g : !dist.group
  %r = dist.all_reduce %x in %group : !x combine {
  ^bb0(%a: !x, %b: !x):
    %n = rns.negate %a : !x
    %s = rns.add %n, %b : (!x, !x) -> !x
    dist.yield %s : !x
  }
  func.return %r : !x
}
