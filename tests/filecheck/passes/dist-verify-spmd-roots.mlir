// RUN: %opt %s -p 'dist-verify-spmd{ranks=2}' --split-input-file --verify-diagnostics
// RUN: %opt %s -p dist-verify-spmd --split-input-file | filecheck %s
// RUN: not %opt %s -p 'dist-verify-spmd{ranks=0}' --split-input-file 2>&1 | filecheck %s --check-prefix=NONE

// Roots, and the size that a program is written for, are checked where the size of the groups is given.

// NONE: found ranks=0, expected at least 1
// CHECK: dist.broadcast %x from 1
func.func @main(%x: f64) -> f64 {
  %world = fhelium.resource @world : !dist.group
  %y = dist.broadcast %x from 1 in %world : f64
  func.return %y : f64
}

// -----

// CHECK: dist.broadcast %x from 2
func.func @main(%x: f64) -> f64 {
  %world = fhelium.resource @world : !dist.group
  // expected-error@+1 {{found root 2 of dist.broadcast in @world, expected 0 to 1: the group has 2 ranks}}
  %y = dist.broadcast %x from 2 in %world : f64
  func.return %y : f64
}

// -----

// CHECK: dist.rank %world of 3
func.func @main(%x: f64) -> f64 {
  %world = fhelium.resource @world : !dist.group
  %fits = dist.rank %world of 2
  // expected-error@+1 {{found @world of size 2, expected 3, the size that the program is written for: start as many ranks, or write it for this size}}
  %r = dist.rank %world of 3
  %y = dist.broadcast %x from 1 in %world : f64
  func.return %y : f64
}

// -----

// A part has no more ranks than its group.
// CHECK: dist.broadcast %x from 2 in %half
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %half = dist.split %world by %r, %r
  %fits = dist.rank %half of 1
  // expected-error@+1 {{found root 2 of dist.broadcast in %half, expected 0 to 1: the group has at most 2 ranks}}
  %y = dist.broadcast %x from 2 in %half : f64
  func.return
}

// -----

// CHECK: dist.rank %half of 3
func.func @main() {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %half = dist.split %world by %r, %r
  // expected-error@+1 {{found %half of size 2 at most, expected 3, the size that the program is written for}}
  %place = dist.rank %half of 3
  func.return
}

// -----

// Without a collective too.
// CHECK: dist.rank %world of 3
func.func @main() {
  %world = fhelium.resource @world : !dist.group
  // expected-error@+1 {{found @world of size 2, expected 3, the size that the program is written for}}
  %r = dist.rank %world of 3
  func.return
}

// -----

// Each rank alone in its part: the numbers of the ranks tell, also without a message.
// CHECK: dist.broadcast %x from 1 in %alone
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %alone = dist.split %world by %r, %r
  %place = dist.rank %alone of 1
  %own = dist.broadcast %x from 0 in %alone : f64
  // expected-error@+1 {{found root 1 of dist.broadcast, expected 0 to 0: the group of rank 0 has 1 rank}}
  %y = dist.broadcast %x from 1 in %alone : f64
  func.return
}

// -----

// CHECK: dist.rank %alone of 2
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %alone = dist.split %world by %r, %r
  // expected-error@+1 {{found %alone of size 1 on rank 0, expected 2, the size that the program is written for: split the group into parts of that size, or write the program for this size}}
  %place = dist.rank %alone of 2
  func.return
}

// -----

// In a function, and in one part of a part.
// CHECK: dist.broadcast %x from 1 in %alone
func.func private @in_part(%x: f64, %color: index) -> f64 {
  %world = fhelium.resource @world : !dist.group
  %zero = arith.constant 0 : index
  %both = dist.split %world by %zero, %color
  %alone = dist.split %both by %color, %color
  // expected-error@+1 {{found root 1 of dist.broadcast, expected 0 to 0: the group of rank 0 has 1 rank}}
  %y = dist.broadcast %x from 1 in %alone : f64
  func.return %y : f64
}
func.func @main(%x: f64) -> f64 {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %y = func.call @in_part(%x, %r) : (f64, index) -> f64
  func.return %y : f64
}

// -----

// Who is in a part that an argument decides is not known before the run.
// CHECK: dist.broadcast %x from 1 in %some
func.func @main(%x: f64, %color: index) -> f64 {
  %world = fhelium.resource @world : !dist.group
  %some = dist.split %world by %color, %color
  %y = dist.broadcast %x from 1 in %some : f64
  func.return %y : f64
}

// -----

// Ranks that cannot be followed, since both branches repeat more often than is followed one by one,
// are not at fault.
// CHECK: dist.broadcast %x from 1 in %both
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %often = arith.constant 100 : index
  %first = arith.cmpi eq, %r, %zero : index
  scf.if %first {
    scf.for %i = %zero to %often step %one {
      dist.barrier in %world
    }
  } else {
    scf.for %i = %zero to %often step %one {
      dist.barrier in %world
    }
  }
  %both = dist.split %world by %zero, %r
  %y = dist.broadcast %x from 1 in %both : f64
  func.return
}
