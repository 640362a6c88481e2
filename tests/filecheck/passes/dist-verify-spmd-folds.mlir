// RUN: %opt %s -p dist-verify-spmd --split-input-file --verify-diagnostics

// Each rank may run a combine region, and all have to end with the same bits.

// What a region uses is the same on all ranks: constants, what a collective made equal, the size.
func.func @main(%x: f64, %n: index, %w: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %two = arith.constant 2.0 : f64
  %size = dist.group_size %world
  %equal = dist.broadcast %w from 0 in %world : f64
  %y = dist.all_reduce %x in %world : f64 combine {
  ^bb0(%a: f64, %b: f64):
    %scaled = arith.mulf %b, %two : f64
    %moved = arith.addf %scaled, %equal : f64
    %sum = arith.addf %a, %moved : f64
    dist.yield %sum : f64
  }
  %k = dist.reduce %n to 0 in %world : index combine {
  ^bb0(%a: index, %b: index):
    %sum = arith.addi %a, %b : index
    %least = arith.minsi %sum, %size : index
    dist.yield %least : index
  }
  // A color is the same within its part.
  %part = dist.split %world by %r, %r
  %l = dist.all_reduce %n in %part : index combine {
  ^bb0(%a: index, %b: index):
    %sum = arith.addi %a, %b : index
    %most = arith.maxsi %sum, %r : index
    dist.yield %most : index
  }
  func.return
}

// -----

// Calls that hand one value to the fold, and another to what does not fold.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %w = arith.constant 2.0 : f64
  %same = arith.constant 2.0 : f64
  %other = arith.constant 3.0 : f64
  %first = arith.cmpi eq, %r, %zero : index
  scf.if %first {
    %y = func.call @scaled(%w, %other) : (f64, f64) -> f64
  } else {
    %y = func.call @scaled(%same, %w) : (f64, f64) -> f64
  }
  func.return
}
func.func private @scaled(%w: f64, %x: f64) -> f64 {
  %world = fhelium.resource @world : !dist.group
  %y = dist.all_reduce %x in %world : f64 combine {
  ^bb0(%a: f64, %b: f64):
    %scaled = arith.mulf %b, %w : f64
    %sum = arith.addf %a, %scaled : f64
    dist.yield %sum : f64
  }
  func.return %y : f64
}

// -----

// An argument is each rank's own.
func.func @main(%x: f64, %w: f64) {
  %world = fhelium.resource @world : !dist.group
  // expected-error@+1 {{pass dist-verify-spmd: dist.all_reduce in @world may fold to another value on each rank: its combine region uses %w, and each rank passes its own argument to @main: make %w equal with dist.broadcast, or fold without it}}
  %y = dist.all_reduce %x in %world : f64 combine {
  ^bb0(%a: f64, %b: f64):
    %scaled = arith.mulf %b, %w : f64
    %sum = arith.addf %a, %scaled : f64
    dist.yield %sum : f64
  }
  func.return
}

// -----

// So is a material, for one rank too.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %w = fhelium.material @weight : f64
  // expected-error@+1 {{dist.reduce in @world may fold to another value on each rank: its combine region uses %w, and each rank loads its own material @weight}}
  %y = dist.reduce %x to 0 in %world : f64 combine {
  ^bb0(%a: f64, %b: f64):
    %sum = arith.addf %a, %w : f64
    dist.yield %sum : f64
  }
  func.return
}

// -----

// And a key, which no broadcast can make equal.
#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193]], special = [353], digits = 2,
                      scale = 2^6, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @main(%x: !ct) {
    %world = fhelium.resource @world : !dist.group
    %key = fhelium.resource @one : !ckks.key<rotation, 1>
    // expected-error@+1 {{its combine region uses %key, and each rank binds its own resource @one: bind the same @one on all ranks, and link with --no-verify-spmd, or fold without it}}
    %y = dist.all_reduce %x in %world : !ct combine {
    ^bb0(%a: !ct, %b: !ct):
      %rotated = ckks.rotate %a by 1 with %key : !ct, !ckks.key<rotation, 1>
      %sum = ckks.add %rotated, %b : !ct
      dist.yield %sum : !ct
    }
    func.return
  }
}

// -----

// The rank, through a value that is chosen by it.
func.func @main(%x: tensor<8xi64>, %w: tensor<4xi64>) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %zero : index
  %one = dist.broadcast %w from 0 in %world : tensor<4xi64>
  %other = dist.broadcast %w from 1 in %world : tensor<4xi64>
  %chosen = arith.select %first, %one, %other : tensor<4xi64>
  // expected-error@+1 {{dist.reduce_scatter in @world may fold to another value on each rank: its combine region uses %r, and dist.rank differs on every rank: make %r equal with dist.broadcast, or fold without it}}
  %y = dist.reduce_scatter %x along 0 in %world : tensor<8xi64> -> tensor<4xi64> combine {
  ^bb0(%a: tensor<4xi64>, %b: tensor<4xi64>):
    %sum = arith.addi %a, %chosen : tensor<4xi64>
    dist.yield %sum : tensor<4xi64>
  }
  func.return
}

// -----

// The rank is asked for inside, and steers there.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %y = dist.start {
    // expected-error@+1 {{its combine region uses %r, and dist.rank differs on every rank}}
    %z = dist.all_reduce %x in %world : f64 combine {
    ^bb0(%a: f64, %b: f64):
      %group = fhelium.resource @world : !dist.group
      %r = dist.rank %group
      %zero = arith.constant 0 : index
      %first = arith.cmpi eq, %r, %zero : index
      %either = scf.if %first -> (f64) {
        scf.yield %a : f64
      } else {
        scf.yield %b : f64
      }
      dist.yield %either : f64
    }
    dist.yield %z : f64
  } : !dist.pending<f64>
  %z = dist.wait %y : f64
  func.return
}

// -----

// A value that differs from the second iteration on.
func.func @main(%x: index) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %last = scf.for %i = %zero to %two step %one iter_args(%w = %zero) -> (index) {
    // expected-error@+1 {{its combine region uses %r, and dist.rank differs on every rank}}
    %y = dist.all_reduce %x in %world : index combine {
    ^bb0(%a: index, %b: index):
      %sum = arith.addi %a, %w : index
      dist.yield %sum : index
    }
    scf.yield %r : index
  }
  func.return
}

// -----

// Equal within another group only.
func.func @main(%x: f64, %w: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %part = dist.split %world by %r, %r
  %equal = dist.broadcast %w from 0 in %part : f64
  // expected-error@+1 {{its combine region uses %equal, and dist.broadcast makes it equal within another group only}}
  %y = dist.all_reduce %x in %world : f64 combine {
  ^bb0(%a: f64, %b: f64):
    %sum = arith.addf %a, %equal : f64
    dist.yield %sum : f64
  }
  func.return
}

// -----

// Each call hands on a constant, but ranks are in different calls.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %two = arith.constant 2.0 : f64
  %three = arith.constant 3.0 : f64
  %first = arith.cmpi eq, %r, %zero : index
  scf.if %first {
    func.call @outer(%x, %two) : (f64, f64) -> ()
  } else {
    func.call @outer(%x, %three) : (f64, f64) -> ()
  }
  func.return
}
func.func private @outer(%x: f64, %w: f64) {
  %more = arith.addf %w, %w : f64
  func.call @scaled(%more, %x) : (f64, f64) -> ()
  func.return
}
func.func private @scaled(%w: f64, %x: f64) {
  %world = fhelium.resource @world : !dist.group
  // expected-error@+1 {{dist.all_reduce in @world may run on some ranks only: the condition %first of scf.if may differ between ranks}}
  %y = dist.all_reduce %x in %world : f64 combine {
  ^bb0(%a: f64, %b: f64):
    %sum = arith.addf %a, %w : f64
    dist.yield %sum : f64
  }
  func.return
}
