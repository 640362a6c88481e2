// RUN: %opt %s -p dist-verify-spmd --split-input-file --verify-diagnostics

// In one branch only.
func.func @main(%x: f64) -> f64 {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %zero : index
  %y = scf.if %first -> (f64) {
    // expected-error@+1 {{pass dist-verify-spmd: dist.broadcast in @world may run on some ranks only: the condition %first of scf.if may differ between ranks through %r, since dist.rank differs on every rank: give both branches the same collectives in the same order, or move them out, or make %first equal with dist.broadcast}}
    %z = dist.broadcast %x from 0 in %world : f64
    scf.yield %z : f64
  } else {
    scf.yield %x : f64
  }
  func.return %y : f64
}

// -----

// An argument is each rank's own, numbers among them; here there is no step between.
func.func @main(%x: f64, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  scf.if %go {
    // expected-error@+1 {{the condition %go of scf.if may differ between ranks, since each rank passes its own argument to @main: }}
    %z = dist.broadcast %x from 0 in %world : f64
  }
  func.return
}

// -----

// Branches that differ in the root.
func.func @main(%x: f64, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  scf.if %go {
    // expected-error@+1 {{dist.broadcast in @world may run on some ranks only}}
    %z = dist.broadcast %x from 0 in %world : f64
  } else {
    %z = dist.broadcast %x from 1 in %world : f64
  }
  func.return
}

// -----

// Branches that differ in the type.
func.func @main(%x: f64, %i: index, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  scf.if %go {
    // expected-error@+1 {{dist.broadcast in @world may run on some ranks only}}
    %z = dist.broadcast %x from 0 in %world : f64
  } else {
    %z = dist.broadcast %i from 0 in %world : index
  }
  func.return
}

// -----

// Branches that differ in the group.
func.func @main(%x: f64, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  %row = fhelium.resource @row : !dist.group
  scf.if %go {
    // expected-error@+1 {{dist.broadcast in @world may run on some ranks only}}
    %z = dist.broadcast %x from 0 in %world : f64
  } else {
    %z = dist.broadcast %x from 0 in %row : f64
  }
  func.return
}

// -----

// Branches that differ in the order.
func.func @main(%x: f64, %i: index, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  scf.if %go {
    // expected-error@+1 {{dist.broadcast in @world may run on some ranks only}}
    %z = dist.broadcast %x from 0 in %world : f64
    %w = dist.broadcast %i from 0 in %world : index
  } else {
    %w = dist.broadcast %i from 0 in %world : index
    %z = dist.broadcast %x from 0 in %world : f64
  }
  func.return
}

// -----

// Branches that differ in the combine region: each rank would fold in its own way.
func.func @main(%x: f64, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  scf.if %go {
    // expected-error@+1 {{dist.all_reduce in @world may run on some ranks only}}
    %y = dist.all_reduce %x in %world : f64 combine {
    ^bb0(%a: f64, %b: f64):
      %sum = arith.addf %a, %b : f64
      dist.yield %sum : f64
    }
  } else {
    %y = dist.all_reduce %x in %world : f64 combine {
    ^bb0(%a: f64, %b: f64):
      %sum = arith.mulf %a, %b : f64
      dist.yield %sum : f64
    }
  }
  func.return
}

// -----

// Branches that differ in the implementation, which speaks a language of its own.
func.func @main(%x: f64, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  scf.if %go {
    // expected-error@+1 {{dist.broadcast in @world may run on some ranks only}}
    %z = dist.broadcast %x from 0 in %world {fhelium.implementation = "mine"} : f64
  } else {
    %z = dist.broadcast %x from 0 in %world : f64
  }
  func.return
}

// -----

// Branches whose loops or calls differ.
func.func @main(%x: f64, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %one = arith.constant 1 : index
  scf.if %go {
    scf.for %i = %zero to %two step %one {
      // expected-error@+1 {{dist.broadcast in @world may run on some ranks only}}
      %z = dist.broadcast %x from 0 in %world : f64
    }
  } else {
    scf.for %i = %zero to %one step %one {
      %z = dist.broadcast %x from 0 in %world : f64
    }
  }
  func.return
}

// -----

func.func @main(%x: f64, %go: i1) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.if %go {
    func.call @times(%x, %zero) : (f64, index) -> ()
  } else {
    func.call @times(%x, %one) : (f64, index) -> ()
  }
  func.return
}
func.func @times(%x: f64, %n: index) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    // expected-error@+1 {{dist.broadcast in @world may run on some ranks only: the condition %go of scf.if}}
    %z = dist.broadcast %x from 0 in %world : f64
  }
  func.return
}

// -----

// The bound of a loop is the rank.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = dist.rank %world
  scf.for %i = %zero to %r step %one {
    // expected-error@+1 {{dist.broadcast in @world may run more often on some ranks: the bound %r of scf.for may differ between ranks, since dist.rank differs on every rank: move the collective out of the loop, or make %r equal with dist.broadcast}}
    %z = dist.broadcast %x from 0 in %world : f64
  }
  func.return
}

// -----

// The condition of a loop is data.
func.func @main(%x: f64, %values: tensor<4xi1>) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  scf.while () : () -> () {
    %more = tensor.extract %values[%zero] : tensor<4xi1>
    scf.condition(%more)
  } do {
    // expected-error@+1 {{may run more often on some ranks: the condition %more of scf.while may differ between ranks through %values, since each rank passes its own argument to @main}}
    %z = dist.broadcast %x from 0 in %world : f64
    scf.yield
  }
  func.return
}

// -----

// A carried value differs from the second iteration on.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %r = dist.rank %world
  %last = scf.for %i = %zero to %two step %one iter_args(%n = %zero) -> (index) {
    %c = arith.cmpi eq, %n, %zero : index
    scf.if %c {
      // expected-error@+1 {{the condition %c of scf.if may differ between ranks through %r}}
      %z = dist.broadcast %x from 0 in %world : f64
    }
    scf.yield %r : index
  }
  func.return
}

// -----

// A value that is chosen by the rank, from equal ones.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = dist.rank %world
  %c = arith.cmpi eq, %r, %zero : index
  %n = scf.if %c -> (index) {
    scf.yield %zero : index
  } else {
    scf.yield %one : index
  }
  scf.for %i = %zero to %n step %one {
    // expected-error@+1 {{the bound %n of scf.for may differ between ranks through %r}}
    %z = dist.broadcast %x from 0 in %world : f64
  }
  func.return
}

// -----

// The number of iterations differs, and so does what they count.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = dist.rank %world
  %n = scf.for %i = %zero to %r step %one iter_args(%m = %zero) -> (index) {
    %k = arith.addi %m, %one : index
    scf.yield %k : index
  }
  scf.for %i = %zero to %n step %one {
    // expected-error@+1 {{the bound %n of scf.for may differ between ranks through %r}}
    %z = dist.broadcast %x from 0 in %world : f64
  }
  func.return
}

// -----

// The collective is in a function that only some ranks call.
func.func @main(%x: f64, %go: i1) {
  scf.if %go {
    func.call @all(%x) : (f64) -> ()
  }
  func.return
}
func.func @all(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  // expected-error@+1 {{dist.broadcast in @world may run on some ranks only: the condition %go of scf.if}}
  %z = dist.broadcast %x from 0 in %world : f64
  func.return
}

// -----

// The rank reaches the bound through a call, into the function and out of it.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %n = func.call @same(%r) : (index) -> index
  func.call @times(%x, %n) : (f64, index) -> ()
  func.return
}
func.func @same(%n: index) -> index {
  func.return %n : index
}
func.func @times(%x: f64, %n: index) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    // expected-error@+1 {{the bound %n of scf.for may differ between ranks through %r}}
    %z = dist.broadcast %x from 0 in %world : f64
  }
  func.return
}

// -----

// The rank reaches the condition through a buffer.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = dist.rank %world
  %buffer = memref.alloc() : memref<1xindex>
  memref.store %zero, %buffer[%zero] : memref<1xindex>
  %c = arith.cmpi eq, %r, %zero : index
  scf.if %c {
    memref.store %one, %buffer[%zero] : memref<1xindex>
  }
  %n = memref.load %buffer[%zero] : memref<1xindex>
  scf.for %i = %zero to %n step %one {
    // expected-error@+1 {{the bound %n of scf.for may differ between ranks through %r}}
    %z = dist.broadcast %x from 0 in %world : f64
  }
  func.return
}

// -----

// A buffer that another function may write.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %buffer = memref.alloc() : memref<1xindex>
  func.call @fill(%buffer) : (memref<1xindex>) -> ()
  %n = memref.load %buffer[%zero] : memref<1xindex>
  scf.for %i = %zero to %n step %one {
    // expected-error@+1 {{the bound %n of scf.for may differ between ranks, since it comes from memory that other ops may write}}
    %z = dist.broadcast %x from 0 in %world : f64
  }
  func.return
}
func.func @fill(%buffer: memref<1xindex>) {
  func.return
}

// -----

// Materials and random numbers are each rank's own.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %go = fhelium.material @go : i1
  scf.if %go {
    // expected-error@+1 {{since each rank loads its own material @go}}
    %z = dist.broadcast %x from 0 in %world : f64
  }
  func.return
}

// -----

// Equal in one group is not equal in another.
func.func @main(%x: f64, %n: i1) {
  %world = fhelium.resource @world : !dist.group
  %row = fhelium.resource @row : !dist.group
  %go = dist.broadcast %n from 0 in %row : i1
  scf.if %go {
    // expected-error@+1 {{since dist.broadcast makes it equal within another group only}}
    %z = dist.broadcast %x from 0 in %world : f64
  }
  func.return
}

// -----

// Nothing is known of an op that is not pure.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %go = "test.op"() : () -> i1
  scf.if %go {
    // expected-error@+1 {{since test.op may give another result on each rank}}
    %z = dist.broadcast %x from 0 in %world : f64
  }
  func.return
}

// -----

// Nor of how often it runs its region.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  "test.op"() ({
    // expected-error@+1 {{dist.broadcast is inside test.op, which may run it any number of times: use scf.if, scf.for or scf.while}}
    %z = dist.broadcast %x from 0 in %world : f64
  "test.termop"() : () -> ()
  }) : () -> ()
  func.return
}

// -----

// An early return.
func.func @main(%x: f64, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  cf.cond_br %go, ^bb1, ^bb2
^bb1:
  func.return
^bb2:
  // expected-error@+1 {{dist.broadcast is inside @main, which has 3 blocks, and may return or jump before it: use scf.if and scf.for}}
  %z = dist.broadcast %x from 0 in %world : f64
  func.return
}

// -----

func.func @main(%x: f64, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  scf.if %go {
    func.call @main(%x, %go) : (f64, i1) -> ()
  }
  // expected-error@+1 {{dist.broadcast is inside @main, which calls itself: how often is not known: use a loop}}
  %z = dist.broadcast %x from 0 in %world : f64
  func.return
}

// -----

func.func private @elsewhere()
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %z = dist.broadcast %x from 0 in %world : f64
  // expected-error@+1 {{func.call of @elsewhere, which has no body here: it may hide a collective, so define it in this module}}
  func.call @elsewhere() : () -> ()
  func.return
}

// -----

// A group that is chosen.
func.func @main(%x: f64, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  %row = fhelium.resource @row : !dist.group
  %group = arith.select %go, %world, %row : !dist.group
  // expected-error@+1 {{dist.broadcast runs in the group %group, which may be another one each time: name the group with fhelium.resource, or split it with dist.split, in this function}}
  %z = dist.broadcast %x from 0 in %group : f64
  func.return
}

// -----

// Ranks of one color are alike in that color, but not in the group that they come from.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %half = dist.split %world by %r, %r
  %c = arith.cmpi eq, %r, %zero : index
  scf.if %c {
    %y = dist.broadcast %x from 0 in %half : f64
    // expected-error@+1 {{dist.broadcast in @world may run on some ranks only: the condition %c}}
    %z = dist.broadcast %x from 0 in %world : f64
  }
  func.return
}

// -----

// The color of the last iteration is not that of the group at hand.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %last = scf.for %i = %zero to %two step %one iter_args(%old = %zero) -> (index) {
    %color = arith.minsi %r, %i : index
    %half = dist.split %world by %color, %r
    %c = arith.cmpi eq, %old, %zero : index
    scf.if %c {
      // expected-error@+1 {{dist.broadcast in %half may run on some ranks only: the condition %c of scf.if may differ between ranks through %r}}
      %y = dist.broadcast %x from 0 in %half : f64
    }
    scf.yield %color : index
  }
  func.return
}

// -----

// What a collective gives to each rank is not the same on all.
func.func @main(%x: tensor<4xi1>, %y: f64) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %all = dist.all_gather %x along 0 in %world : tensor<4xi1> -> tensor<?xi1>
  %same = tensor.extract %all[%zero] : tensor<?xi1>
  scf.if %same {
    %z = dist.broadcast %y from 0 in %world : f64
  }
  %share = dist.scatter %x from 0 along 0 in %world : tensor<4xi1> -> tensor<?xi1>
  %own = tensor.extract %share[%zero] : tensor<?xi1>
  scf.if %own {
    // expected-error@+1 {{the condition %own of scf.if may differ between ranks through %share, since dist.scatter may give another result on each rank}}
    %z = dist.broadcast %y from 0 in %world : f64
  }
  func.return
}

// -----

// Behind a call, in an op that may skip its regions; what the function calls counts too.
func.func @main() {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  scf.index_switch %r
  case 0 {
    // expected-error@+1 {{func.call of @outer, which issues dist.barrier, is inside scf.index_switch, which may run it any number of times: use scf.if, scf.for or scf.while}}
    func.call @outer() : () -> ()
    scf.yield
  }
  default {
    scf.yield
  }
  func.return
}
func.func private @outer() {
  func.call @sync() : () -> ()
  func.return
}
func.func private @sync() {
  %world = fhelium.resource @world : !dist.group
  dist.barrier in %world
  func.return
}

// -----

func.func private @elsewhere()
func.func @main(%n: index) {
  %world = fhelium.resource @world : !dist.group
  dist.barrier in %world
  scf.index_switch %n
  case 0 {
    // expected-error@+1 {{func.call of @elsewhere, which may hide a collective, is inside scf.index_switch, which may run it any number of times}}
    func.call @elsewhere() : () -> ()
    scf.yield
  }
  default {
    scf.yield
  }
  func.return
}

// -----

// Behind a call, in a function with several blocks.
func.func @main() {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %zero : index
  cf.cond_br %first, ^bb1, ^bb2
^bb1:
  // expected-error@+1 {{func.call of @sync, which issues dist.barrier, is inside @main, which has 3 blocks, and may return or jump before it: use scf.if and scf.for}}
  func.call @sync() : () -> ()
  cf.br ^bb2
^bb2:
  func.return
}
func.func private @sync() {
  %world = fhelium.resource @world : !dist.group
  dist.barrier in %world
  func.return
}

// -----

// Functions that call each other.
func.func @main(%x: i1) {
  %world = fhelium.resource @world : !dist.group
  %go = dist.broadcast %x from 0 in %world : i1
  func.call @there(%go) : (i1) -> ()
  func.return
}
func.func private @there(%go: i1) {
  scf.if %go {
    // expected-error@+1 {{func.call of @back, which issues dist.barrier, is inside @there, which calls itself: how often is not known: use a loop}}
    func.call @back(%go) : (i1) -> ()
  }
  func.return
}
func.func private @back(%go: i1) {
  %world = fhelium.resource @world : !dist.group
  dist.barrier in %world
  func.call @there(%go) : (i1) -> ()
  func.return
}

// -----

// The rank is made in the region of a pure op, whose operands are the same everywhere.
func.func @main() {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = scf.index_switch %zero -> index
  case 0 {
    %group = fhelium.resource @world : !dist.group
    %r = dist.rank %group
    scf.yield %r : index
  }
  default {
    scf.yield %one : index
  }
  scf.for %i = %zero to %n step %one {
    // expected-error@+1 {{the bound %n of scf.for may differ between ranks through %r, since dist.rank differs on every rank}}
    dist.barrier in %world
  }
  func.return
}

// -----

// Carried through a loop whose condition differs from the second iteration on.
func.func @main() {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = dist.rank %world
  %n = scf.while (%a = %zero, %b = %zero) : (index, index) -> (index) {
    %more = arith.cmpi slt, %a, %one : index
    scf.condition(%more) %b : index
  } do {
  ^bb0(%b: index):
    // expected-error@+1 {{the condition %more of scf.while may differ between ranks through %r}}
    dist.barrier in %world
    scf.yield %b, %r : index, index
  }
  func.return
}

// -----

// A reduction to one rank, and a message, are that rank's own.
func.func @main(%x: i1) {
  %world = fhelium.resource @world : !dist.group
  %any = dist.reduce %x to 0 in %world : i1 combine {
  ^bb0(%a: i1, %b: i1):
    %or = arith.ori %a, %b : i1
    dist.yield %or : i1
  }
  scf.if %any {
    // expected-error@+1 {{the condition %any of scf.if may differ between ranks, since dist.reduce may give another result on each rank}}
    dist.barrier in %world
  }
  func.return
}

// -----

func.func @main() {
  %world = fhelium.resource @world : !dist.group
  %got = dist.recv from 0 in %world : i1
  scf.if %got {
    // expected-error@+1 {{the condition %got of scf.if may differ between ranks, since dist.recv may give another result on each rank}}
    dist.barrier in %world
  }
  func.return
}

// -----

// Branches that split alike, but meet in another part.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %zero : index
  %old = dist.split %world by %zero, %r
  scf.if %first {
    // expected-error@+1 {{dist.split in @world may run on some ranks only: the condition %first of scf.if}}
    %part = dist.split %world by %zero, %r
    dist.barrier in %part
  } else {
    %part = dist.split %world by %zero, %r
    dist.barrier in %old
  }
  func.return
}

// -----

// The first call of the function has an operand that is the same on all ranks, the second has not,
// and a call of itself has both.
func.func private @count(%n: index, %go: i1) -> index {
  %m = scf.if %go -> (index) {
    %no = arith.constant false
    %k = func.call @count(%n, %no) : (index, i1) -> index
    scf.yield %k : index
  } else {
    scf.yield %n : index
  }
  func.return %m : index
}

func.func @main() {
  %world = fhelium.resource @world : !dist.group
  %yes = arith.constant true
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = dist.rank %world
  %n = func.call @count(%one, %yes) : (index, i1) -> index
  %d = func.call @count(%r, %yes) : (index, i1) -> index
  scf.for %i = %zero to %d step %one {
    // expected-error@+1 {{dist.barrier in @world may run more often on some ranks: the bound %d of scf.for may differ between ranks through %r, since dist.rank differs on every rank}}
    dist.barrier in %world
  }
  func.return
}

// -----

// A group that is split anew in each iteration has other ranks each time.
func.func @main(%x: i1) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  scf.for %i = %zero to %two step %one {
    %color = arith.minsi %r, %i : index
    %part = dist.split %world by %color, %r
    %go = dist.broadcast %x from 0 in %part : i1
    scf.if %go {
      // expected-error@+1 {{dist.barrier in %part may run on some ranks only: the condition %go of scf.if may differ between ranks, since dist.broadcast makes it equal within %part, which is split inside scf.for and may be another part each time: move dist.split and what uses %part into a function, which scf.for calls}}
      dist.barrier in %part
    }
  }
  func.return
}

// -----

// What another call returned is equal within the part of that call.
func.func @main(%x: index) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %old = func.call @step(%r, %zero, %x) : (index, index, index) -> index
  %new = func.call @step(%zero, %old, %x) : (index, index, index) -> index
  func.return
}
func.func private @step(%color: index, %old: index, %x: index) -> index {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %part = dist.split %world by %color, %color
  %go = arith.cmpi eq, %old, %zero : index
  scf.if %go {
    // expected-error@+1 {{the condition %go of scf.if may differ between ranks through %equal, since dist.broadcast made it equal within the %part of another call only: give both branches}}
    dist.barrier in %part
  }
  %equal = dist.broadcast %x from 0 in %part : index
  func.return %equal : index
}
