// RUN: %opt %s --split-input-file -p secure-select-parameters | filecheck %s
// RUN: %opt %s --split-input-file -p secure-select-parameters,secure-select-parameters | filecheck %s
// RUN: %opt %s --split-input-file -p secure-default | filecheck %s --check-prefix=WHOLE
// RUN: %opt %s --split-input-file -p secure-select-parameters,secure-pack,ckks-default | filecheck %s --check-prefix=WHOLE
// RUN: %opt %s --split-input-file -p 'secure-select-parameters{min-slots=10000 precision=30 largest=16}' | filecheck %s --check-prefix=MORE

// One level fits into the ring with 4096 slots.
// CHECK:       = #ckks.parameters<ring_degree = 8192, {{.*}} security = 128>
// CHECK:       builtin.module attributes {ckks.parameters = #{{[a-zA-Z0-9_]+}}} {
// CHECK:       %y = secure.mul %x, %x : !secure.tensor<16>, !secure.tensor<16>
// WHOLE:       #[[P:ckks_N8192_L1]] = #ckks.parameters
// WHOLE:       ckks.parameters = #[[P]], secure.slots = 4096 : i64
// WHOLE:       ckks.square
// MORE:        = #ckks.parameters<ring_degree = 32768, {{.*}} scale = 2^5{{[0-9]}}
func.func @main(%x: !secure.tensor<16>) -> !secure.tensor<16> {
  %y = secure.mul %x, %x : !secure.tensor<16>, !secure.tensor<16>
  func.return %y : !secure.tensor<16>
}

// -----

// Four levels need the next ring, so the program is packed for its slots.
// CHECK:       #ckks_N16384_L4 = #ckks.parameters
// WHOLE:       #[[Q:ckks_N16384_L4]] = #ckks.parameters
// WHOLE:       ckks.parameters = #[[Q]], secure.slots = 8192 : i64
func.func @main(%x: !secure.tensor<8>) -> !secure.tensor<8> {
  %y = secure.polynomial %x, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8] in monomial : !secure.tensor<8>
  %z = secure.mul %y, %x : !secure.tensor<8>, !secure.tensor<8>
  func.return %z : !secure.tensor<8>
}

// -----

// Parameters that are there stay.
// CHECK:       #ckks_N32768_L1 = #ckks.parameters
// WHOLE:       #[[R:ckks_N32768_L1]] = #ckks.parameters
// WHOLE:       ckks.parameters = #[[R]], secure.slots = 16384 : i64
// MORE:        #ckks_N32768_L1 = #ckks.parameters
#given = #ckks.parameters<ring_degree = 32768, moduli = [[35184368877569], [2199023190017]], special = [8796090597377, 8796093349889], digits = 1, scale = 2^41, secret = ternary, security = 128>
builtin.module attributes {ckks.parameters = #given} {
  func.func @main(%x: !secure.tensor<16>) -> !secure.tensor<16> {
    %y = secure.mul %x, %x : !secure.tensor<16>, !secure.tensor<16>
    func.return %y : !secure.tensor<16>
  }
}

// -----

// A program without secret tensors is left alone.
// CHECK:       {{^}}builtin.module {
// CHECK:       func.func @numbers
func.func @numbers(%x: tensor<4xf64>) -> tensor<4xf64> {
  func.return %x : tensor<4xf64>
}

// -----

// Where constants make values large, the first prime has room for them.
// CHECK:       #ckks_N8192_L0 = #ckks.parameters<ring_degree = 8192, moduli = {{\[\[}}562949952847873]], {{.*}} scale = 2^38,
// CHECK:       func.func @large
func.func @large(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  %c = arith.constant dense<100.0> : tensor<4xf64>
  %y = secure.mul %x, %c : !secure.tensor<4>, tensor<4xf64>
  func.return %y : !secure.tensor<4>
}
