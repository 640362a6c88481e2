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
