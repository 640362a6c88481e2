// RUN: %opt %s --split-input-file --verify-diagnostics -p ckks-select-parameters
// RUN: not %opt %s --split-input-file -p 'ckks-select-parameters{depth=300}' 2>&1 | filecheck %s --check-prefix=DEEP
// RUN: not %opt %s --split-input-file -p 'ckks-select-parameters{depth=0 precision=-1}' 2>&1 | filecheck %s --check-prefix=NEGATIVE
// RUN: not %opt %s --split-input-file -p 'ckks-select-parameters{depth=2 precision=300 largest=1.0e20}' 2>&1 | filecheck %s --check-prefix=HOPELESS
// RUN: not %opt %s --split-input-file -p 'ckks-select-parameters{depth=0 min-slots=200000}' 2>&1 | filecheck %s --check-prefix=SLOTS

// DEEP: no parameters for depth 300 and 20 bits of precision on values up to 1: N = 131072: {{.*}} At N = 131072 there are about {{7[0-9]}} levels at 20 bits{{$}}
// HOPELESS: no parameters for depth 2 and 300 bits of precision on values up to 1e+20: N = 131072: no scale gives more than {{.*}} bits of precision at depth 2: messages are encoded and decoded in float64. Use less depth or precision{{[^.]*$}}
// NEGATIVE: error: pass 'ckks-select-parameters': found precision=-1, expected a finite number above 0
// SLOTS: error: pass ckks-select-parameters: found 200000 slots, expected at most 65536

// expected-error@+1 {{found a ciphertext without a level, expected one on each, or the option depth=: ckks-assign-levels finds them}}
func.func @no_levels(%x: !ckks.ciphertext) {
  func.return
}

// -----

// expected-error@+1 {{found a program packed for 4096 slots, which needs N = 16384 at depth 6 and 20 bits: pack it with secure-assign-layouts{slots=8192}}}
builtin.module attributes {secure.slots = 4096 : i64} {
  func.func @packed_too_small(%x: !ckks.ciphertext<level = 6>) {
    func.return
  }
}

// -----

// expected-error@+1 {{found a program packed for 2048 slots, which needs N = 8192 at depth 0 and 20 bits: pack it with secure-assign-layouts{slots=4096}}}
builtin.module attributes {secure.slots = 2048 : i64} {
  func.func @no_such_ring(%x: !ckks.ciphertext<level = 0>) {
    func.return
  }
}

// -----

// expected-error@+1 {{found a program packed for 4096 slots, and one of 5000 is wanted: pack it with secure-assign-layouts{slots=8192}}}
builtin.module attributes {secure.slots = 4096 : i64} {
  func.func @encodes_more(%x: !ckks.ciphertext<level = 0>, %v: tensor<5000xf64>) {
    %p = ckks.encode %v : tensor<5000xf64> -> !ckks.plaintext<level = 0>
    func.return
  }
}
