// RUN: %opt %s -p 'fhelium-assign-implementations{target=torch}' | filecheck %s --check-prefixes=CHECK,TARGET
// RUN: %opt %s -p 'fhelium-assign-implementations{target=torch}' --print-debuginfo | filecheck %s --check-prefix=PLACE
// RUN: %opt %s -p 'fhelium-assign-implementations{target=torch op="rns.ntt"}' | filecheck %s --check-prefixes=CHECK,NARROW
// RUN: %opt %s -p 'fhelium-assign-implementations{target=torch only="rns.ntt","ckks.rotate"}' | filecheck %s --check-prefixes=CHECK,NARROW
// RUN: %opt %s -p 'fhelium-assign-implementations{target=torch value="back"}' | filecheck %s --check-prefixes=CHECK,VALUE
// RUN: %opt %s -p 'fhelium-assign-implementations{op="rns.ntt" implementation="my-ntt"}' | filecheck %s --check-prefixes=CHECK,OP
// RUN: %opt %s -p 'fhelium-assign-implementations{value="sum" implementation="my-add"}' | filecheck %s --check-prefixes=CHECK,NAMED
// RUN: %opt %s -p 'fhelium-assign-implementations{op="rns.intt" value="back" implementation="my-intt"}' | filecheck %s --check-prefixes=CHECK,BOTH
// RUN: %opt %s -p 'fhelium-assign-implementations{op="test.op" implementation="my-op"}' | filecheck %s --check-prefixes=CHECK,ANY
// RUN: %opt %s -p 'fhelium-assign-implementations{op="rns.ntt" implementation="my-ntt"},fhelium-assign-implementations{op="rns.ntt" implementation="my-ntt"}' | filecheck %s --check-prefixes=CHECK,OP
// RUN: %opt %s -p 'fhelium-assign-implementations{op="rns.ntt" implementation="my-ntt"},fhelium-assign-implementations{op="rns.ntt" target=torch overwrite=true}' | filecheck %s --check-prefixes=CHECK,NARROW

!p = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!c = !rns.poly<basis = Q[0:2], components = 2, form = coefficient>

// A family leaves alone the ops that it does not have, here func and test.

// CHECK-LABEL:  func.func @main
// CHECK-NEXT:   %group = fhelium.resource @world : !dist.group
// TARGET-NEXT:  %a = rns.ntt %x {fhelium.implementation = "torch-rns-ntt"}
// TARGET-NEXT:  %b = rns.ntt %x {fhelium.implementation = "torch-rns-ntt"}
// TARGET-NEXT:  %sum = rns.add %a, %b {fhelium.implementation = "torch-rns-add"}
// TARGET-NEXT:  %back = rns.intt %sum {fhelium.implementation = "torch-rns-intt"}
// TARGET-NEXT:  %all = dist.broadcast %back from 0 in %group {fhelium.implementation = "torch-broadcast"}
// TARGET-NEXT:  %other = "test.op"(%all)
// TARGET-SAME:    {note} : (
// TARGET-NEXT:  func.return

// NARROW-NEXT:  %a = rns.ntt %x {fhelium.implementation = "torch-rns-ntt"}
// NARROW-NEXT:  %b = rns.ntt %x {fhelium.implementation = "torch-rns-ntt"}
// NARROW-NEXT:  %sum = rns.add %a, %b : (
// NARROW-NEXT:  %back = rns.intt %sum : !

// VALUE-NEXT:   %a = rns.ntt %x : !
// VALUE-NEXT:   %b = rns.ntt %x : !
// VALUE-NEXT:   %sum = rns.add %a, %b : (
// VALUE-NEXT:   %back = rns.intt %sum {fhelium.implementation = "torch-rns-intt"}

// OP-NEXT:      %a = rns.ntt %x {fhelium.implementation = "my-ntt"}
// OP-NEXT:      %b = rns.ntt %x {fhelium.implementation = "my-ntt"}
// OP-NEXT:      %sum = rns.add %a, %b : (

// NAMED-NEXT:   %a = rns.ntt %x : !
// NAMED-NEXT:   %b = rns.ntt %x : !
// NAMED-NEXT:   %sum = rns.add %a, %b {fhelium.implementation = "my-add"} : (
// NAMED-NEXT:   %back = rns.intt %sum : !

// BOTH-NEXT:    %a = rns.ntt %x : !
// BOTH:         %back = rns.intt %sum {fhelium.implementation = "my-intt"}

// ANY:          {note, fhelium.implementation = "my-op"}

// PLACE:        %sum = rns.add {{.*}} loc("{{.*}}implementations.mlir":58:10)
func.func @main(%x: !c) -> !c {
  %group = fhelium.resource @world : !dist.group
  %a = rns.ntt %x : !c -> !p
  %b = rns.ntt %x : !c -> !p
  %sum = rns.add %a, %b : (!p, !p) -> !p
  %back = rns.intt %sum : !p -> !c
  %all = dist.broadcast %back from 0 in %group : !c
  %other = "test.op"(%all) {note} : (!c) -> !c
  func.return %other : !c
}

// All functions, and ops in regions, count.
// CHECK-LABEL:  func.func @nested
// TARGET-NEXT:  dist.all_reduce %x in %group attributes {fhelium.implementation = "torch-generic-all-reduce"}
// TARGET:       rns.add %l, %r {fhelium.implementation = "torch-rns-add"}
// CHECK:        dist.yield
func.func @nested(%x: !p, %group: !dist.group) -> !p {
  %total = dist.all_reduce %x in %group : !p combine {
  ^bb0(%l: !p, %r: !p):
    %local = rns.add %l, %r : (!p, !p) -> !p
    dist.yield %local : !p
  }
  func.return %total : !p
}
