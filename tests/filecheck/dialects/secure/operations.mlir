// RUN: %roundtrip
// RUN: %generic-roundtrip
// RUN: %opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @elementwise
// GENERIC:     "func.func"() <{sym_name = "elementwise"
func.func @elementwise(%x: !secure.tensor<2x3>, %y: !secure.tensor<2x3>) {
  // CHECK-NEXT:    %p = arith.constant dense<2.500000e-01> : tensor<2x3xf64>
  %p = arith.constant dense<0.25> : tensor<2x3xf64>

  // CHECK-NEXT:    %add = secure.add %x, %y : !secure.tensor<2x3>, !secure.tensor<2x3>
  // GENERIC:       %add = "secure.add"(%x, %y) : (!secure.tensor<2x3>, !secure.tensor<2x3>) -> !secure.tensor<2x3>
  %add = secure.add %x, %y : !secure.tensor<2x3>, !secure.tensor<2x3>

  // CHECK-NEXT:    %add_public = secure.add %x, %p : !secure.tensor<2x3>, tensor<2x3xf64>
  // GENERIC-NEXT:  %add_public = "secure.add"(%x, %p) : (!secure.tensor<2x3>, tensor<2x3xf64>) -> !secure.tensor<2x3>
  %add_public = secure.add %x, %p : !secure.tensor<2x3>, tensor<2x3xf64>

  // CHECK-NEXT:    %sub = secure.sub %x, %y : !secure.tensor<2x3>, !secure.tensor<2x3>
  %sub = secure.sub %x, %y : !secure.tensor<2x3>, !secure.tensor<2x3>

  // CHECK-NEXT:    %sub_public = secure.sub %x, %p : !secure.tensor<2x3>, tensor<2x3xf64>
  %sub_public = secure.sub %x, %p : !secure.tensor<2x3>, tensor<2x3xf64>

  // CHECK-NEXT:    %mul = secure.mul %x, %y : !secure.tensor<2x3>, !secure.tensor<2x3>
  %mul = secure.mul %x, %y : !secure.tensor<2x3>, !secure.tensor<2x3>

  // CHECK-NEXT:    %mul_public = secure.mul %x, %p : !secure.tensor<2x3>, tensor<2x3xf64>
  %mul_public = secure.mul %x, %p : !secure.tensor<2x3>, tensor<2x3xf64>

  // CHECK-NEXT:    %negate = secure.negate %x : !secure.tensor<2x3>
  // GENERIC:       %negate = "secure.negate"(%x) : (!secure.tensor<2x3>) -> !secure.tensor<2x3>
  %negate = secure.negate %x : !secure.tensor<2x3>
  func.return
}

// CHECK-LABEL: func.func @polynomial
// GENERIC:     "func.func"() <{sym_name = "polynomial"
func.func @polynomial(%x: !secure.tensor<4>) {
  // CHECK-NEXT:    %0 = secure.polynomial %x, [1.000000e+00, 0.000000e+00, 5.000000e-01] in monomial : !secure.tensor<4>
  // GENERIC:       "secure.polynomial"(%x) <{coefficients = array<f64: 1.000000e+00, 0.000000e+00, 5.000000e-01>, basis = #secure<basis monomial>}> : (!secure.tensor<4>) -> !secure.tensor<4>
  %0 = secure.polynomial %x, [1.0, 0.0, 0.5] in monomial : !secure.tensor<4>

  // CHECK-NEXT:    %1 = secure.polynomial %x, [1.000000e+00] in monomial on [-1.000000e+00, 1.000000e+00] : !secure.tensor<4>
  %1 = secure.polynomial %x, [1.0] in monomial on [-1.0, 1.0] : !secure.tensor<4>

  // CHECK-NEXT:    %2 = secure.polynomial %x, [0.33333333333333331, 1.000000e-01] in chebyshev on [-4.000000e+00, 8.000000e+00] : !secure.tensor<4>
  %2 = secure.polynomial %x, [0.3333333333333333, 0.1] in chebyshev on [-4.0, 8.0] : !secure.tensor<4>

  // CHECK-NEXT:    %3 = secure.polynomial %x, [1.000000e+00, 5.000000e-01] in chebyshev on [-4.000000e+00, 4.000000e+00] approximating "relu" within 1.250000e-02 : !secure.tensor<4>
  // GENERIC:       basis = #secure<basis chebyshev>, domain = array<f64: -4.000000e+00, 4.000000e+00>, function = "relu", error = 1.250000e-02 : f64}>
  %3 = secure.polynomial %x, [1.0, 0.5] in chebyshev on [-4.0, 4.0] approximating "relu" within 0.0125 : !secure.tensor<4>

  // Whole numbers of many digits come back too.
  // CHECK-NEXT:    %4 = secure.polynomial %x, [1.234567e+06, 1.2345678900000000e+08, 1.000000e+300] in monomial : !secure.tensor<4>
  %4 = secure.polynomial %x, [1234567.0, 123456789.0, 1.0e+300] in monomial : !secure.tensor<4>
  func.return
}

// CHECK-LABEL: func.func @vectors
// GENERIC:     "func.func"() <{sym_name = "vectors"
func.func @vectors(%x: !secure.tensor<8>, %m: !secure.tensor<2x3x4>) {
  // CHECK-NEXT:    %0 = secure.rotate %x by 3 : !secure.tensor<8>
  // GENERIC:       "secure.rotate"(%x) <{step = 3 : i64}> : (!secure.tensor<8>) -> !secure.tensor<8>
  %0 = secure.rotate %x by 3 : !secure.tensor<8>

  // CHECK-NEXT:    %1 = secure.rotate %x by -3 : !secure.tensor<8>
  %1 = secure.rotate %x by -3 : !secure.tensor<8>

  // CHECK-NEXT:    %2 = secure.sum %m : !secure.tensor<2x3x4> -> !secure.tensor<1>
  // GENERIC:       "secure.sum"(%m) : (!secure.tensor<2x3x4>) -> !secure.tensor<1>
  %2 = secure.sum %m : !secure.tensor<2x3x4> -> !secure.tensor<1>

  // CHECK-NEXT:    %3 = secure.sum %m over [0, 2] : !secure.tensor<2x3x4> -> !secure.tensor<3>
  // GENERIC:       "secure.sum"(%m) <{dims = array<i64: 0, 2>}> : (!secure.tensor<2x3x4>) -> !secure.tensor<3>
  %3 = secure.sum %m over [0, 2] : !secure.tensor<2x3x4> -> !secure.tensor<3>

  // CHECK-NEXT:    %4 = secure.sum %m over [0, 1, 2] : !secure.tensor<2x3x4> -> !secure.tensor<1>
  %4 = secure.sum %m over [0, 1, 2] : !secure.tensor<2x3x4> -> !secure.tensor<1>

  // CHECK-NEXT:    %5 = secure.reshape %m : !secure.tensor<2x3x4> -> !secure.tensor<24>
  // GENERIC:       "secure.reshape"(%m) : (!secure.tensor<2x3x4>) -> !secure.tensor<24>
  %5 = secure.reshape %m : !secure.tensor<2x3x4> -> !secure.tensor<24>
  func.return
}

// CHECK-LABEL: func.func @layers
// GENERIC:     "func.func"() <{sym_name = "layers"
func.func @layers(%v: !secure.tensor<4>, %x: !secure.tensor<4x8x8>) {
  // CHECK-NEXT:    %w = fhelium.material @"0.weight" : tensor<3x4xf64>
  %w = fhelium.material @"0.weight" : tensor<3x4xf64>
  // CHECK-NEXT:    %k = fhelium.material @k : tensor<6x4x3x3xf64>
  %k = fhelium.material @k : tensor<6x4x3x3xf64>
  // CHECK-NEXT:    %g = fhelium.material @g : tensor<6x2x3x3xf64>
  %g = fhelium.material @g : tensor<6x2x3x3xf64>

  // CHECK-NEXT:    %0 = secure.matvec %w, %v : tensor<3x4xf64>, !secure.tensor<4> -> !secure.tensor<3>
  // GENERIC:       "secure.matvec"(%w, %v) : (tensor<3x4xf64>, !secure.tensor<4>) -> !secure.tensor<3>
  %0 = secure.matvec %w, %v : tensor<3x4xf64>, !secure.tensor<4> -> !secure.tensor<3>

  // CHECK-NEXT:    %1 = secure.conv2d %k, %x : tensor<6x4x3x3xf64>, !secure.tensor<4x8x8> -> !secure.tensor<6x6x6>
  // GENERIC:       "secure.conv2d"(%k, %x) <{stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, groups = 1 : i64}>
  %1 = secure.conv2d %k, %x : tensor<6x4x3x3xf64>, !secure.tensor<4x8x8> -> !secure.tensor<6x6x6>

  // CHECK-NEXT:    %2 = secure.conv2d %k, %x stride [2, 3] padding [1, 0] : tensor<6x4x3x3xf64>, !secure.tensor<4x8x8> -> !secure.tensor<6x4x2>
  %2 = secure.conv2d %k, %x stride [2, 3] padding [1, 0] : tensor<6x4x3x3xf64>, !secure.tensor<4x8x8> -> !secure.tensor<6x4x2>

  // CHECK-NEXT:    %3 = secure.conv2d %g, %x padding [1, 1] groups 2 : tensor<6x2x3x3xf64>, !secure.tensor<4x8x8> -> !secure.tensor<6x8x8>
  // GENERIC:       padding = array<i64: 1, 1>, groups = 2 : i64, stride = array<i64: 1, 1>
  %3 = secure.conv2d %g, %x padding [1, 1] groups 2 : tensor<6x2x3x3xf64>, !secure.tensor<4x8x8> -> !secure.tensor<6x8x8>
  func.return
}
