// RUN: %opt %s --split-input-file --verify-diagnostics -p 'ckks-insert-relinearize{strategy=lazy}'
// RUN: not %opt %s -p 'ckks-insert-relinearize{strategy=later}' 2>&1 | filecheck %s --check-prefix=OPTION

// OPTION: error: option 'strategy' of pass 'ckks-insert-relinearize': found 'later', expected

!ct = !ckks.ciphertext
// expected-error@+1 {{found ckks.relinearize on a value that is at rest already: drop the op, and let the pass place it}}
func.func @nothing_to_do(%x: !ct, %key: !ckks.key<relinearization>) -> !ct {
  %a = ckks.relinearize %x with %key : !ct -> !ct
  func.return %a : !ct
}
