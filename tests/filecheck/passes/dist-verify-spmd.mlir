// RUN: %opt %s -p 'dist-verify-spmd{ranks=2}' | filecheck %s
// RUN: %opt %s -p dist-verify-spmd > %t
// RUN: %opt %s | diff - %t

// What all ranks do alike is accepted, and left as it is.

// CHECK-LABEL: func.func @straight
// CHECK:         dist.broadcast %x from 1 in %world : f64
func.func @straight(%x: f64) -> f64 {
  %world = fhelium.resource @world : !dist.group
  %y = dist.broadcast %x from 1 in %world : f64
  %z = dist.all_reduce %y in %world : f64 combine {
  ^bb0(%a: f64, %b: f64):
    %sum = arith.addf %a, %b : f64
    dist.yield %sum : f64
  }
  func.return %z : f64
}

// Rank-dependent control flow without collectives.
// CHECK-LABEL: func.func @each_its_own_way
func.func @each_its_own_way(%x: f64, %n: index) -> f64 {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %r, %zero : index
  %y = scf.if %first -> (f64) {
    %s = scf.for %i = %zero to %n step %one iter_args(%t = %x) -> (f64) {
      %u = arith.addf %t, %t : f64
      scf.yield %u : f64
    }
    scf.yield %s : f64
  } else {
    scf.yield %x : f64
  }
  %z = dist.broadcast %y from 0 in %world : f64
  func.return %z : f64
}

// Constants, the size of the group, and what a collective made equal.
// CHECK-LABEL: func.func @equal_bounds
func.func @equal_bounds(%x: f64, %n: index) -> f64 {
  %world = fhelium.resource @world : !dist.group
  %size = dist.group_size %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = dist.broadcast %n from 0 in %world : index
  %most = dist.all_reduce %n in %world : index combine {
  ^bb0(%a: index, %b: index):
    %max = arith.maxsi %a, %b : index
    dist.yield %max : index
  }
  %end = arith.addi %many, %size : index
  %last = arith.addi %end, %most : index
  %y = scf.for %i = %zero to %last step %one iter_args(%t = %x) -> (f64) {
    %even = arith.cmpi eq, %i, %many : index
    %u = scf.if %even -> (f64) {
      %v = dist.broadcast %t from 0 in %world : f64
      scf.yield %v : f64
    } else {
      scf.yield %t : f64
    }
    scf.yield %u : f64
  }
  func.return %y : f64
}

// Both branches of a condition that differs issue the same messages, with payloads of their own.
// CHECK-LABEL: func.func @same_in_both
func.func @same_in_both(%x: f64, %y: f64) -> f64 {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %first = arith.cmpi eq, %r, %zero : index
  %z = scf.if %first -> (f64) {
    %a = dist.broadcast %x from 0 in %world : f64
    %b = scf.for %i = %zero to %two step %one iter_args(%t = %a) -> (f64) {
      %u = func.call @helper(%t) : (f64) -> f64
      scf.yield %u : f64
    }
    scf.yield %b : f64
  } else {
    %a = arith.mulf %x, %y : f64
    %b = dist.broadcast %y from 0 in %world : f64
    %end = arith.constant 2 : index
    %c = scf.for %i = %zero to %end step %one iter_args(%t = %b) -> (f64) {
      %u = func.call @helper(%b) : (f64) -> f64
      scf.yield %u : f64
    }
    scf.yield %c : f64
  }
  func.return %z : f64
}

// CHECK-LABEL: func.func @helper
func.func @helper(%x: f64) -> f64 {
  %world = fhelium.resource @world : !dist.group
  %y = dist.all_reduce %x in %world : f64 combine {
  ^bb0(%a: f64, %b: f64):
    %sum = arith.addf %a, %b : f64
    dist.yield %sum : f64
  }
  func.return %y : f64
}

// A loop ends on all ranks together where its condition was agreed on.
// CHECK-LABEL: func.func @until
func.func @until(%x: index, %limit: index) -> index {
  %world = fhelium.resource @world : !dist.group
  %end = dist.broadcast %limit from 0 in %world : index
  %start = dist.broadcast %x from 0 in %world : index
  %y = scf.while (%i = %start) : (index) -> index {
    %more = arith.cmpi slt, %i, %end : index
    scf.condition(%more) %i : index
  } do {
  ^bb0(%i: index):
    %j = dist.all_reduce %i in %world : index combine {
    ^bb1(%a: index, %b: index):
      %sum = arith.addi %a, %b : index
      dist.yield %sum : index
    }
    scf.yield %j : index
  }
  func.return %y : index
}

// Through calls and through a buffer.
// CHECK-LABEL: func.func @through_memory_and_calls
func.func @through_memory_and_calls(%x: f64, %n: index) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %m = dist.broadcast %n from 0 in %world : index
  %buffer = memref.alloc() : memref<1xindex>
  memref.store %m, %buffer[%zero] : memref<1xindex>
  %k = memref.load %buffer[%zero] : memref<1xindex>
  %end = func.call @twice(%k) : (index) -> index
  scf.for %i = %zero to %end step %one {
    %y = dist.broadcast %x from 0 in %world : f64
  }
  memref.dealloc %buffer : memref<1xindex>
  func.return
}

// CHECK-LABEL: func.func @twice
func.func @twice(%n: index) -> index {
  %m = arith.addi %n, %n : index
  func.return %m : index
}

// A recursive function, and one with several blocks, that hold no collective.
// CHECK-LABEL: func.func @recursive
func.func @recursive(%n: index, %stop: i1) -> index {
  %m = scf.if %stop -> (index) {
    scf.yield %n : index
  } else {
    %k = func.call @recursive(%n, %stop) : (index, i1) -> index
    scf.yield %k : index
  }
  func.return %m : index
}

// CHECK-LABEL: func.func @blocks
func.func @blocks(%n: index) -> index {
  cf.br ^bb1(%n : index)
^bb1(%m: index):
  func.return %m : index
}

// What steers within branches that issue the same steers nothing.
// CHECK-LABEL: func.func @steers_nothing
func.func @steers_nothing() {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %r, %zero : index
  scf.if %first {
    func.call @either(%zero) : (index) -> ()
  } else {
    func.call @either(%one) : (index) -> ()
  }
  func.return
}
// CHECK-LABEL: func.func @either
func.func @either(%n: index) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %c = arith.cmpi eq, %n, %zero : index
  scf.if %c {
    dist.barrier in %world
  } else {
    dist.barrier in %world
  }
  func.return
}

// Ranks of one color are in one part, whichever branch makes it.
// CHECK-LABEL: func.func @split_in_both
func.func @split_in_both() {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %zero : index
  scf.if %first {
    %part = dist.split %world by %zero, %r
    %again = dist.split %part by %r, %r
    dist.barrier in %part
    dist.barrier in %again
  } else {
    %part = dist.split %world by %zero, %zero
    %again = dist.split %part by %zero, %r
    dist.barrier in %part
    dist.barrier in %again
  }
  func.return
}

// What a pure op chooses by an equal number, among the size of the group.
// CHECK-LABEL: func.func @pure_regions
func.func @pure_regions(%n: index) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %m = dist.broadcast %n from 0 in %world : index
  %end = scf.index_switch %m -> index
  case 0 {
    scf.yield %one : index
  }
  default {
    %size = dist.group_size %world
    scf.yield %size : index
  }
  scf.for %i = %zero to %end step %one {
    dist.barrier in %world
  }
  func.return
}

// Ops that are pure, though xDSL does not say so, alone and in a region.
// CHECK-LABEL: func.func @undeclared
func.func @undeclared(%n: i32, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %size = dist.group_size %world
  %rest = arith.remui %size, %two : index
  %m = dist.broadcast %n from 0 in %world : i32
  %end = scf.index_switch %rest -> index
  case 0 {
    scf.yield %one : index
  }
  default {
    %wide = arith.extsi %m : i32 to i64
    %cast = arith.index_cast %wide : i64 to index
    scf.yield %cast : index
  }
  scf.for %i = %zero to %end step %one {
    dist.barrier in %world
  }
  func.return
}

// A function returns to each call what it makes of the operands of that call.
// CHECK-LABEL: func.func private @next
func.func private @next(%n: index) -> index {
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %m = scf.for %i = %zero to %one step %one iter_args(%k = %n) -> (index) {
    %l = arith.addi %k, %one : index
    scf.yield %l : index
  }
  func.return %m : index
}

// CHECK-LABEL: func.func @calls_apart
func.func @calls_apart() -> index {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = func.call @next(%one) : (index) -> index
  %other = func.call @next(%r) : (index) -> index
  scf.for %i = %zero to %n step %one {
    dist.barrier in %world
  }
  func.return %other : index
}

// A group that is split in each iteration, with what uses it, in a function.
// CHECK-LABEL: func.func @split_in_each_iteration
func.func @split_in_each_iteration(%x: i1) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  scf.for %i = %zero to %two step %one {
    %color = arith.minsi %r, %i : index
    func.call @in_its_part(%x, %color) : (i1, index) -> ()
  }
  func.return
}
// CHECK-LABEL: func.func private @in_its_part
func.func private @in_its_part(%x: i1, %color: index) {
  %world = fhelium.resource @world : !dist.group
  %part = dist.split %world by %color, %color
  %go = dist.broadcast %x from 0 in %part : i1
  scf.if %go {
    dist.barrier in %part
  }
  func.return
}
