// RUN: %opt %s -p 'fhelium-assign-implementations{target=cpu},fhelium-assign-in-place' | filecheck %s
// RUN: %opt %s -p 'fhelium-assign-implementations{target=cpu},fhelium-assign-in-place,fhelium-assign-in-place' | filecheck %s
// RUN: %opt %s -p 'fhelium-assign-implementations{target=cpu},fhelium-assign-in-place{overwrite-arguments=true}' | filecheck %s --check-prefix=ARGUMENTS
// RUN: %opt %s -p 'fhelium-assign-implementations{target=torch},fhelium-assign-in-place' | filecheck %s --check-prefix=TORCH
// RUN: %opt %s -p fhelium-assign-in-place | filecheck %s --check-prefix=TORCH

// No op of the torch family, and none that records nothing, runs in place.
// TORCH-NOT: fhelium.in_place

!p = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!p1 = !rns.poly<basis = Q[0:2], components = 1, form = evaluation>
!c = !rns.poly<basis = Q[0:2], components = 2, form = coefficient>
!less = !rns.poly<basis = Q[0:1], components = 2, form = evaluation>

// A chain overwrites what it made, and not the argument; an op may read the operand beforehand.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:  %a = rns.negate %x {fhelium.implementation = "cpu-rns-negate"}
// CHECK-NEXT:  %b = rns.add %a, %x {fhelium.implementation = "cpu-rns-add", fhelium.in_place}
// CHECK-NEXT:  %other = rns.negate %b {fhelium.implementation = "cpu-rns-negate"}
// CHECK-NEXT:  %c = rns.sub %b, %other {fhelium.implementation = "cpu-rns-sub", fhelium.in_place}
// CHECK-NEXT:  %d = rns.intt %c {fhelium.implementation = "cpu-rns-intt", fhelium.in_place}
// CHECK-NEXT:  func.return

// ARGUMENTS-LABEL: func.func @chain
// ARGUMENTS-NEXT:  %a = rns.negate %x {fhelium.implementation = "cpu-rns-negate"}
func.func @chain(%x: !p) -> !c {
  %a = rns.negate %x : !p
  %b = rns.add %a, %x : (!p, !p) -> !p
  %other = rns.negate %b : !p
  %c = rns.sub %b, %other : (!p, !p) -> !p
  %d = rns.intt %c : !p -> !c
  func.return %d : !c
}

// An argument may be overwritten if the option says so, but not where the program calls.
// CHECK-LABEL:     func.func @argument
// CHECK-NOT:       fhelium.in_place
// ARGUMENTS-LABEL: func.func @argument
// ARGUMENTS-NEXT:  rns.negate %x {fhelium.implementation = "cpu-rns-negate", fhelium.in_place}
func.func @argument(%x: !p) -> !p {
  %a = rns.negate %x : !p
  func.return %a : !p
}
// CHECK-LABEL:     func.func @called
// ARGUMENTS-LABEL: func.func @called
// ARGUMENTS-NEXT:  rns.negate %x {fhelium.implementation = "cpu-rns-negate"} :
func.func @called(%x: !p) -> !p {
  %a = rns.negate %x : !p
  func.return %a : !p
}

// What a call makes may be its argument.
// CHECK-LABEL: func.func @caller
// CHECK-NOT:   fhelium.in_place
// CHECK:       func.return
func.func @caller(%x: !p) -> !p {
  %a = func.call @called(%x) : (!p) -> !p
  %b = rns.negate %a : !p
  func.return %b : !p
}

// The operand is used later, used twice, or returned.
// CHECK-LABEL: func.func @used
// CHECK-NOT:   fhelium.in_place
// CHECK:       func.return
func.func @used(%x: !p) -> (!p, !p, !p, !p) {
  %a = rns.negate %x : !p
  %b = rns.negate %a : !p
  %c = rns.add %x, %a : (!p, !p) -> !p
  %d = rns.negate %x : !p
  %e = rns.add %d, %d : (!p, !p) -> !p
  func.return %b, %c, %d, %e : !p, !p, !p, !p
}

// A view of the operand is alive, or the operand is one; tables and materials belong to others.
// CHECK-LABEL: func.func @views
// CHECK-NOT:   fhelium.in_place
// CHECK:       func.return
func.func @views(%x: !p) -> (!p, !p1, !p1, !less, !p) {
  %a = rns.negate %x : !p
  %view = rns.components %a [0 to 1] : !p -> !p1
  %b = rns.negate %a : !p
  %c = rns.negate %view : !p1
  %d = rns.negate %x : !p
  %low = rns.project %d : !p -> !less
  %e = rns.negate %low : !less
  %material = fhelium.material @weights : !p
  %f = rns.negate %material : !p
  func.return %b, %view, %c, %e, %f : !p, !p1, !p1, !less, !p
}

// Ops and implementations of others may make views.
// CHECK-LABEL: func.func @others
// CHECK-NOT:   fhelium.in_place
// CHECK:       func.return
func.func @others(%x: !p) -> (!p, !p, !p) {
  %a = "test.op"(%x) : (!p) -> !p
  %b = rns.negate %a : !p
  %c = rns.negate %x : !p
  %kept = "test.op"(%c) : (!p) -> !p
  %d = rns.negate %c : !p
  func.return %b, %kept, %d : !p, !p, !p
}

// What a loop carries, and what it captures, is there for the next round; its own values are not.
// CHECK-LABEL: func.func @loop
// CHECK:       %outside = rns.negate %x {fhelium.implementation = "cpu-rns-negate"} :
// CHECK:       scf.for
// CHECK-NEXT:    %a = rns.negate %carried {fhelium.implementation = "cpu-rns-negate"} :
// CHECK-NEXT:    %b = rns.add %a, %outside {fhelium.implementation = "cpu-rns-add", fhelium.in_place}
// CHECK-NEXT:    %c = rns.add %outside, %b {fhelium.implementation = "cpu-rns-add"} :
// CHECK-NEXT:    scf.yield
// CHECK-NEXT:  }
// CHECK-NEXT:  %last = rns.negate %r {fhelium.implementation = "cpu-rns-negate"} :
// CHECK-NEXT:  %end = rns.negate %outside {fhelium.implementation = "cpu-rns-negate"} :
func.func @loop(%x: !p, %n: index) -> (!p, !p) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %outside = rns.negate %x : !p
  %r = scf.for %i = %zero to %n step %one iter_args(%carried = %x) -> (!p) {
    %a = rns.negate %carried : !p
    %b = rns.add %a, %outside : (!p, !p) -> !p
    %c = rns.add %outside, %b : (!p, !p) -> !p
    scf.yield %c : !p
  }
  %last = rns.negate %r : !p
  %end = rns.negate %outside : !p
  func.return %last, %end : !p, !p
}

!ct = !ckks.ciphertext<level = 1, scale = 1024.0, components = 2, form = evaluation>
!ct2 = !ckks.ciphertext<level = 1, scale = 1048576.0, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 1, scale = 1048576.0, components = 3, form = evaluation>

// Whole ops: a product needs more room than its operand has, the others do not.
// CHECK-LABEL: func.func @whole
// CHECK:       ckks.rotate %x by 1 with %turn {fhelium.implementation = "cpu-ckks-rotate"} :
// CHECK-NEXT:  ckks.mul %t, %x {fhelium.implementation = "cpu-ckks-mul"} :
// CHECK-NEXT:  ckks.relinearize %xy with %key {fhelium.implementation = "cpu-ckks-relinearize", fhelium.in_place}
// CHECK-NEXT:  ckks.negate %z {fhelium.implementation = "cpu-ckks-negate", fhelium.in_place}
func.func @whole(%x: !ct) -> !ct2 {
  %key = fhelium.resource @relinearization : !ckks.key<relinearization>
  %turn = fhelium.resource @turn : !ckks.key<rotation, 1>
  %t = ckks.rotate %x by 1 with %turn : !ct, !ckks.key<rotation, 1>
  %xy = ckks.mul %t, %x : (!ct, !ct) -> !ct3
  %z = ckks.relinearize %xy with %key : !ct3 -> !ct2
  %y = ckks.negate %z : !ct2
  func.return %y : !ct2
}
