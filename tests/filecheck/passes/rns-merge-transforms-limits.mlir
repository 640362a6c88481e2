// RUN: %opt %s -p rns-merge-transforms | filecheck %s

// Where moving a transform would transform more limbs, it stays; and the rules come to an end.

!e = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!c = !rns.poly<basis = Q[0:3], components = 2, form = coefficient>
!low_e = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!low_c = !rns.poly<basis = Q[0:2], components = 2, form = coefficient>
!one_e = !rns.poly<basis = Q[0], components = 2, form = evaluation>
!one_c = !rns.poly<basis = Q[0], components = 2, form = coefficient>

// One inverse transform among three summands: two transforms either way, and they stay.
// CHECK-LABEL: @even
// CHECK-NEXT:  rns.intt %x
// CHECK-NEXT:  rns.add
// CHECK-NEXT:  rns.add
// CHECK-NEXT:  rns.ntt
// CHECK-NEXT:  func.return
func.func @even(%x: !e, %y: !c, %z: !c) -> !e {
  %0 = rns.intt %x : !e -> !c
  %1 = rns.add %0, %y : (!c, !c) -> !c
  %2 = rns.add %1, %z : (!c, !c) -> !c
  %3 = rns.ntt %2 : !c -> !e
  func.return %3 : !e
}

// Two among three: one transform instead of three.
// CHECK-LABEL: @most
// CHECK-NOT:   intt
// CHECK:       rns.ntt %z
// CHECK-NOT:   ntt
// CHECK:       func.return
func.func @most(%x: !e, %y: !e, %z: !c) -> !e {
  %0 = rns.intt %x : !e -> !c
  %1 = rns.intt %y : !e -> !c
  %2 = rns.add %0, %1 : (!c, !c) -> !c
  %3 = rns.add %2, %z : (!c, !c) -> !c
  %4 = rns.ntt %3 : !c -> !e
  func.return %4 : !e
}

// An inverse transform that has other users stays, so nothing is gained.
// CHECK-LABEL: @shared
// CHECK-NEXT:  %0 = rns.intt %x
// CHECK-NEXT:  %1 = rns.add %0, %y
// CHECK-NEXT:  %2 = rns.ntt %1
// CHECK-NEXT:  func.return %0, %2
func.func @shared(%x: !e, %y: !c) -> (!c, !e) {
  %0 = rns.intt %x : !e -> !c
  %1 = rns.add %0, %y : (!c, !c) -> !c
  %2 = rns.ntt %1 : !c -> !e
  func.return %0, %2 : !c, !e
}

// Limbs count: 3 + 2 against 3.
// CHECK-LABEL: @project
// CHECK-NEXT:  rns.ntt %y
// CHECK-NEXT:  rns.add
// CHECK-NEXT:  rns.project
// CHECK-NEXT:  func.return
func.func @project(%x: !e, %y: !c) -> !low_e {
  %0 = rns.intt %x : !e -> !c
  %1 = rns.add %0, %y : (!c, !c) -> !c
  %2 = rns.project %1 : !c -> !low_c
  %3 = rns.ntt %2 : !low_c -> !low_e
  func.return %3 : !low_e
}

// 3 + 1 against 3 + 3.
// CHECK-LABEL: @project_to_one
// CHECK-NEXT:  rns.intt
// CHECK-NEXT:  rns.add
// CHECK-NEXT:  rns.add
// CHECK-NEXT:  rns.project
// CHECK-NEXT:  rns.ntt
// CHECK-NEXT:  func.return
func.func @project_to_one(%x: !e, %y: !c, %z: !c) -> !one_e {
  %0 = rns.intt %x : !e -> !c
  %1 = rns.add %0, %y : (!c, !c) -> !c
  %2 = rns.add %1, %z : (!c, !c) -> !c
  %3 = rns.project %2 : !c -> !one_c
  %4 = rns.ntt %3 : !one_c -> !one_e
  func.return %4 : !one_e
}

// What records how it runs stays.
// CHECK-LABEL: @assigned
// CHECK-NEXT:  rns.intt %x
// CHECK-NEXT:  rns.negate %0 {fhelium.implementation = "mine"}
// CHECK-NEXT:  rns.ntt %1
// CHECK-NEXT:  rns.ntt %c
// CHECK-NEXT:  rns.ntt %d {fhelium.implementation = "mine"}
// CHECK-NEXT:  rns.add %3, %4
// CHECK-NEXT:  func.return
func.func @assigned(%x: !e, %c: !c, %d: !c) -> (!e, !e) {
  %0 = rns.intt %x : !e -> !c
  %1 = rns.negate %0 {fhelium.implementation = "mine"} : !c
  %2 = rns.ntt %1 : !c -> !e
  %3 = rns.ntt %c : !c -> !e
  %4 = rns.ntt %d {fhelium.implementation = "mine"} : !c -> !e
  %5 = rns.add %3, %4 : (!e, !e) -> !e
  func.return %2, %5 : !e, !e
}

// CHECK-LABEL: @assigned_transform
// CHECK-NEXT:  rns.intt %x
// CHECK-NEXT:  rns.negate
// CHECK-NEXT:  rns.ntt %{{.*}} {fhelium.implementation = "mine"}
func.func @assigned_transform(%x: !e) -> !e {
  %0 = rns.intt %x : !e -> !c
  %1 = rns.negate %0 : !c
  %2 = rns.ntt %1 {fhelium.implementation = "mine"} : !c -> !e
  func.return %2 : !e
}

// CHECK-LABEL: @assigned_sum
// CHECK-NEXT:  rns.ntt %x
// CHECK-NEXT:  rns.ntt %y
// CHECK-NEXT:  rns.add %0, %1 {fhelium.implementation = "mine"}
func.func @assigned_sum(%x: !c, %y: !c) -> !e {
  %0 = rns.ntt %x : !c -> !e
  %1 = rns.ntt %y : !c -> !e
  %2 = rns.add %0, %1 {fhelium.implementation = "mine"} : (!e, !e) -> !e
  func.return %2 : !e
}

// CHECK-LABEL: @assigned_project
// CHECK-NEXT:  rns.ntt %x
// CHECK-NEXT:  rns.project %0 {fhelium.implementation = "mine"}
// CHECK-NEXT:  rns.ntt %y {fhelium.implementation = "mine"}
// CHECK-NEXT:  rns.project %2
func.func @assigned_project(%x: !c, %y: !c) -> (!low_e, !low_e) {
  %0 = rns.ntt %x : !c -> !e
  %1 = rns.project %0 {fhelium.implementation = "mine"} : !e -> !low_e
  %2 = rns.ntt %y {fhelium.implementation = "mine"} : !c -> !e
  %3 = rns.project %2 : !e -> !low_e
  func.return %1, %3 : !low_e, !low_e
}

// A transform that has other users is needed anyway.
// CHECK-LABEL: @shared_sums
// CHECK-NEXT:  %0 = rns.ntt %x
// CHECK-NEXT:  %1 = rns.ntt %y
// CHECK-NEXT:  %2 = rns.ntt %z
// CHECK-NEXT:  rns.add %0, %1
// CHECK-NEXT:  rns.add %2, %0
// CHECK-NEXT:  func.return
func.func @shared_sums(%x: !c, %y: !c, %z: !c) -> (!e, !e) {
  %0 = rns.ntt %x : !c -> !e
  %1 = rns.ntt %y : !c -> !e
  %2 = rns.ntt %z : !c -> !e
  %3 = rns.add %0, %1 : (!e, !e) -> !e
  %4 = rns.add %2, %0 : (!e, !e) -> !e
  func.return %3, %4 : !e, !e
}

// A sum of what is no transform stays.
// CHECK-LABEL: @no_transforms
// CHECK-NEXT:  rns.negate
// CHECK-NEXT:  rns.negate
// CHECK-NEXT:  rns.add
// CHECK-NEXT:  func.return
func.func @no_transforms(%x: !c, %y: !c) -> !c {
  %0 = rns.negate %x : !c
  %1 = rns.negate %y : !c
  %2 = rns.add %0, %1 : (!c, !c) -> !c
  func.return %2 : !c
}
