// RUN: %opt %s --split-input-file -p ckks-select-parameters | filecheck %s
// RUN: %opt %s --split-input-file -p 'ckks-select-parameters{depth=6 precision=25}' | filecheck %s --check-prefix=DEPTH

// The highest level is the depth: here two levels in the smallest ring.
// CHECK: #ckks.parameters<ring_degree = 8192, moduli = {{\[\[[0-9]+\], \[[0-9]+\], \[[0-9]+\]\]}}, {{.*}}, scale = 2^39, secret = ternary, security = 128>
// DEPTH: #ckks.parameters<ring_degree = 16384,
func.func @main(%x: !ckks.ciphertext<level = 2>) {
  func.return
}

// -----

// Plaintexts count too.
// CHECK: #ckks.parameters<ring_degree = 8192, moduli = {{\[\[[0-9]+\], \[[0-9]+\]\]}}, {{.*}}>
func.func @plaintext(%x: !ckks.ciphertext<level = 0>, %p: !ckks.plaintext<level = 1>) {
  func.return
}

// -----

// A rotation has to stay within the slots.
// CHECK: #ckks.parameters<ring_degree = 16384,
func.func @rotations(%x: !ckks.ciphertext<level = 0>, %k: !ckks.key<rotation, -4096>) {
  %y = ckks.rotate %x by -4096 with %k : !ckks.ciphertext<level = 0>, !ckks.key<rotation, -4096>
  func.return
}

// -----

// A program that was packed keeps its slots.
// CHECK: #ckks.parameters<ring_degree = 16384,
builtin.module attributes {secure.slots = 8192 : i64} {
  func.func @packed(%x: !ckks.ciphertext<level = 2>) {
    func.return
  }
}

// -----

// Parameters that are there stay.
// CHECK: #ckks.parameters<ring_degree = 8,
// DEPTH: #ckks.parameters<ring_degree = 8,
#p = #ckks.parameters<ring_degree = 8, moduli = [[97]], special = [193], digits = 1,
                      scale = 2^5, secret = ternary, security = none>
builtin.module attributes {ckks.parameters = #p} {
  func.func @given(%x: !ckks.ciphertext<level = 0>) {
    func.return
  }
}

// -----

// Without ciphertexts there is nothing to choose for, unless depth= says so.
// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @plain
// DEPTH: #ckks.parameters<ring_degree = 16384,
func.func @plain(%x: i32) {
  func.return
}
