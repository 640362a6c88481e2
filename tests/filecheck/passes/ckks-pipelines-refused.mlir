// RUN: %opt %s --split-input-file --verify-diagnostics -p ckks-default
// RUN: %opt %s --split-input-file --verify-diagnostics -p ckks-lazy

// A loop that hands on a product of what it carries loses a level each time around.
!ct = !ckks.ciphertext
func.func @power(%x: !ct, %n: index) -> !ct {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error@+1 {{pass ckks-insert-mod-switch: found scf.for that carries a ciphertext to a lower level each time around, expected one that keeps its level: unroll it with scf-for-loop-unroll}}
  %y = scf.for %i = %zero to %n step %one iter_args(%z = %x) -> (!ct) {
    %a = ckks.mul %z, %x : (!ct, !ct) -> !ct
    scf.yield %a : !ct
  }
  func.return %y : !ct
}

// -----

// By a plaintext, and in a branch.
!ct = !ckks.ciphertext
!pt = !ckks.plaintext
func.func @branch(%x: !ct, %p: !pt, %n: index, %flag: i1) -> !ct {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error@+1 {{found scf.for that carries a ciphertext to a lower level each time around}}
  %y = scf.for %i = %zero to %n step %one iter_args(%z = %x) -> (!ct) {
    %w = scf.if %flag -> (!ct) {
      %a = ckks.mul_plain %z, %p : (!ct, !pt) -> !ct
      scf.yield %a : !ct
    } else {
      scf.yield %z : !ct
    }
    scf.yield %w : !ct
  }
  func.return %y : !ct
}

// -----

// Two values that change places.
!ct = !ckks.ciphertext
func.func @two(%x: !ct, %y: !ct, %n: index) -> !ct {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error@+1 {{found scf.for that carries a ciphertext to a lower level each time around}}
  %v, %w = scf.for %i = %zero to %n step %one iter_args(%a = %x, %b = %y) -> (!ct, !ct) {
    %c = ckks.mul_scalar %a, 0.5 : !ct -> !ct
    scf.yield %b, %c : !ct, !ct
  }
  func.return %v : !ct
}
