// RUN: %opt %s --split-input-file --verify-diagnostics -p 'ckks-insert-rescale{strategy=lazy}'
// RUN: not %opt %s --split-input-file -p 'ckks-insert-rescale{strategy=eager}' 2>&1 | filecheck %s --check-prefix=EAGER

// EAGER: error: pass ckks-insert-rescale: found ckks.rescale on a value that strategy=eager restores before: drop the op, or say strategy=lazy

!ct = !ckks.ciphertext
// expected-error@+1 {{found ckks.rescale on a value that is at rest already: drop the op, and let the pass place it}}
func.func @nothing_to_do(%x: !ct) -> !ct {
  %a = ckks.rescale %x : !ct -> !ct
  func.return %a : !ct
}

// -----

!ct = !ckks.ciphertext<level = 0, form = evaluation>
func.func @has_levels(%x: !ct, %y: !ct) -> !ct {
  // expected-error@+1 {{found a product at level 0 that takes a rescale, expected no level yet: run ckks-insert-rescale before ckks-assign-levels}}
  %a = ckks.mul %x, %y : (!ct, !ct) -> !ct
  func.return %a : !ct
}

// -----

// A sum's types are one, and what a rescale gives has no level yet.
!c2 = !ckks.ciphertext<level = 2>
func.func @sum_of_levels(%x: !c2, %y: !c2) -> !ckks.ciphertext {
  // expected-error@+1 {{found a product of type !ckks.ciphertext<level = 2> that ckks.add takes rescaled, expected neither level nor scale: leave them out for ckks-assign-levels and ckks-assign-scales to find}}
  %a = ckks.mul %x, %y : (!c2, !c2) -> !c2
  %b = ckks.add %a, %y : !c2
  %c = ckks.mul %b, %y : (!c2, !c2) -> !ckks.ciphertext
  func.return %c : !ckks.ciphertext
}

// -----

!c2 = !ckks.ciphertext<level = 2>
func.func @returned(%x: !c2, %y: !c2) -> !c2 {
  // expected-error@+1 {{found a product of type !ckks.ciphertext<level = 2> that func.return takes rescaled}}
  %a = ckks.mul %x, %y : (!c2, !c2) -> !c2
  func.return %a : !c2
}

// -----

!s = !ckks.ciphertext<scale = 2^60>
func.func @scale(%x: !ckks.ciphertext, %y: !ckks.ciphertext) -> !s {
  // expected-error@+1 {{found a product of type !ckks.ciphertext<scale = 2^60> that func.return takes rescaled}}
  %a = ckks.mul %x, %y : (!ckks.ciphertext, !ckks.ciphertext) -> !s
  func.return %a : !s
}
