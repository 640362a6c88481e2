// RUN: %opt %s --split-input-file --verify-diagnostics -p "ckks-distribute-weighted-sum{ranks=2}"
// RUN: not %opt %s -p "ckks-distribute-weighted-sum{ranks=0}" 2>&1 | filecheck %s --check-prefix=RANKS
// RUN: not %opt %s -p "ckks-distribute-weighted-sum{ranks=2 least=1}" 2>&1 | filecheck %s --check-prefix=LEAST

// RANKS: found ranks=0, expected at least 1
// LEAST: found least=1, expected at least 2

!ct = !ckks.ciphertext
func.func @assigned(%x: !ct) -> !ct {
  // expected-error@+1 {{ckks.negate records how or where it runs, expected ops without assignments: run ckks-distribute-weighted-sum before fhelium-assign-implementations}}
  %y = ckks.negate %x {fhelium.implementation = "torch-ckks-negate"} : !ct
  func.return %y : !ct
}

// -----

!ct = !ckks.ciphertext<components = 2>
func.func @main(%x: !ct) -> !ct {
  // expected-error@+1 {{ckks.negate records how or where it runs, expected ops without assignments: run ckks-distribute-weighted-sum before fhelium-assign-implementations, and write mem.device behind it}}
  %y = ckks.negate %x {mem.device = @gpu0} : !ct
  func.return %y : !ct
}
