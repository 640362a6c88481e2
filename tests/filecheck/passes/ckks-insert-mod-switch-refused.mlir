// RUN: %opt %s --split-input-file --verify-diagnostics -p ckks-insert-mod-switch

!ct = !ckks.ciphertext
func.func @loop(%x: !ct, %n: index) -> !ct {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error@+1 {{found scf.for that carries a ciphertext to a lower level each time around, expected one that keeps its level: unroll it with scf-for-loop-unroll}}
  %y = scf.for %i = %zero to %n step %one iter_args(%z = %x) -> (!ct) {
    %a = ckks.mul_scalar %z, 0.5 : !ct -> !ct
    %b = ckks.rescale %a : !ct -> !ct
    scf.yield %b : !ct
  }
  func.return %y : !ct
}

// -----

// Of two nested loops, the one that loses levels.
!ct = !ckks.ciphertext
func.func @nested(%x: !ct, %n: index) -> !ct {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error@+1 {{found scf.for that carries a ciphertext to a lower level each time around}}
  %y = scf.for %i = %zero to %n step %one iter_args(%z = %x) -> (!ct) {
    %w = scf.for %j = %zero to %n step %one iter_args(%v = %z) -> (!ct) {
      %u = ckks.negate %v : !ct
      scf.yield %u : !ct
    }
    %a = ckks.mul_scalar %w, 0.5 : !ct -> !ct
    %b = ckks.rescale %a : !ct -> !ct
    scf.yield %b : !ct
  }
  func.return %y : !ct
}

// -----

!ct = !ckks.ciphertext
func.func @too_low(%x: !ckks.ciphertext<level = 0>) -> !ct {
  // expected-error@+1 {{found ckks.mul_scalar on a value at level 0, expected at least 1, the rescales from there to the end}}
  %a = ckks.mul_scalar %x, 0.5 : !ckks.ciphertext<level = 0> -> !ct
  %b = ckks.rescale %a : !ct -> !ct
  func.return %b : !ct
}
