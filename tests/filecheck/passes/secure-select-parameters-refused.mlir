// RUN: %opt %s --split-input-file --verify-diagnostics -p secure-select-parameters
// RUN: not %opt %s --split-input-file -p 'secure-select-parameters{min-slots=200000}' 2>&1 | filecheck %s --check-prefix=SLOTS
// RUN: not %opt %s --split-input-file -p 'secure-select-parameters{precision=-1}' 2>&1 | filecheck %s --check-prefix=NEGATIVE

// SLOTS: error: pass secure-select-parameters: found 200000 slots, expected at most 65536
// NEGATIVE: error: pass 'secure-select-parameters': found precision=-1, expected a finite number above 0

func.func @main(%x: !secure.tensor<16>) -> !secure.tensor<16> {
  %y = secure.mul %x, %x : !secure.tensor<16>, !secure.tensor<16>
  func.return %y : !secure.tensor<16>
}

// -----

// expected-error@+1 {{found 131072 slots, expected at most 65536}}
builtin.module {
  func.func @main(%x: !secure.tensor<70000>) -> !secure.tensor<70000> {
    func.return %x : !secure.tensor<70000>
  }
}

// -----

// What cannot be packed is said where it is.
func.func @main(%x: !secure.tensor<16>, %n: index) -> !secure.tensor<16> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error@+1 {{found scf.for on secret tensors, expected ops of the secure dialect in one block}}
  %y = scf.for %i = %zero to %n step %one iter_args(%z = %x) -> (!secure.tensor<16>) {
    scf.yield %z : !secure.tensor<16>
  }
  func.return %y : !secure.tensor<16>
}
