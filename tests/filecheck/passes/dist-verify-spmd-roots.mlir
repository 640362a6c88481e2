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
