// RUN: %opt %s --split-input-file -p secure-assign-layouts | filecheck %s
// RUN: %opt %s --split-input-file -p secure-assign-layouts,secure-assign-layouts | filecheck %s

// An argument repeats after the next power of two; a product repeats as often as its rows allow.
// The longest period, 64, leaves 4096 / 64 slots a position: a batch of 64 samples.
// CHECK-DAG: #layout_10_every_16 = #secure.layout<slots = 4096, batch = 64, period = 16, grid = [10], strides = [1]>
// CHECK-DAG: #layout_33_every_64 = #secure.layout<slots = 4096, batch = 64, period = 64, grid = [33], strides = [1]>
// CHECK: builtin.module attributes {secure.slots = 4096 : i64}
// CHECK-LABEL: func.func @main(%x: !secure.tensor<3x11, #layout_33_every_64>) -> !secure.tensor<10, #layout_10_every_16>
func.func @main(%x: !secure.tensor<3x11>) -> !secure.tensor<10> {
  %w = fhelium.material @w : tensor<10x33xf64>
  // CHECK: secure.reshape %x : !secure.tensor<3x11, #layout_33_every_64> -> !secure.tensor<33, #layout_33_every_64>
  %f = secure.reshape %x : !secure.tensor<3x11> -> !secure.tensor<33>
  // CHECK-NEXT: secure.matvec %w, %f : tensor<10x33xf64>, !secure.tensor<33, #layout_33_every_64> -> !secure.tensor<10, #layout_10_every_16>
  %y = secure.matvec %w, %f : tensor<10x33xf64>, !secure.tensor<33> -> !secure.tensor<10>
  func.return %y : !secure.tensor<10>
}

// -----

// With parameters, the slots are half the ring degree. The output of a strided convolution stays
// where its pixels are, with gaps: its rows then move as its columns do.
// CHECK-DAG: #[[gaps:.*]] = #secure.layout<slots = 128, batch = 2, period = 64, grid = [4, 4], strides = [16, 2]>
// CHECK-LABEL: func.func @convolution
builtin.module attributes {ckks.parameters = #ckks.parameters<ring_degree = 256, moduli = [[7681]],
                           special = [12289], digits = 1, scale = 2^6, secret = ternary, security = none>} {
  func.func @convolution(%x: !secure.tensor<64>, %k: tensor<1x1x3x3xf64>) -> !secure.tensor<16> {
    %t = secure.toeplitz %k on [1, 8, 8] stride [2, 2] padding [1, 1] groups 1 : tensor<1x1x3x3xf64> -> tensor<16x64xf64>
    // CHECK: secure.matvec {{.*}} -> !secure.tensor<16, #[[gaps]]>
    %y = secure.matvec %t, %x : tensor<16x64xf64>, !secure.tensor<64> -> !secure.tensor<16>
    func.return %y : !secure.tensor<16>
  }
}

// -----

// Sums lie at their first elements; those of all elements between two repeats lie everywhere.
// CHECK-DAG: #[[rows:.*]] = #secure.layout<slots = 4096, batch = 128, period = 32, grid = [4], strides = [8]>
// CHECK-DAG: #[[one:.*]] = #secure.layout<slots = 4096, batch = 128, period = 1, grid = [1], strides = [1]>
// CHECK-DAG: #[[part:.*]] = #secure.layout<slots = 4096, batch = 128, period = 8, grid = [8], strides = [1]>
// CHECK-LABEL: func.func @sums
func.func @sums(%x: !secure.tensor<4x8>) -> (!secure.tensor<4>, !secure.tensor<1>, !secure.tensor<8>) {
  // CHECK-NEXT: secure.sum %x over [1] : {{.*}} -> !secure.tensor<4, #[[rows]]>
  %a = secure.sum %x over [1] : !secure.tensor<4x8> -> !secure.tensor<4>
  // CHECK-NEXT: secure.sum %x : {{.*}} -> !secure.tensor<1, #[[one]]>
  %b = secure.sum %x : !secure.tensor<4x8> -> !secure.tensor<1>
  // CHECK-NEXT: secure.sum %x over [0] : {{.*}} -> !secure.tensor<8, #[[part]]>
  %c = secure.sum %x over [0] : !secure.tensor<4x8> -> !secure.tensor<8>
  func.return %a, %b, %c : !secure.tensor<4>, !secure.tensor<1>, !secure.tensor<8>
}

// -----

// Operands meet in the layout of the longer period, which is free, or else in that of the left one.
// CHECK-LABEL: func.func @meet
func.func @meet(%x: !secure.tensor<4x8>, %y: !secure.tensor<4>, %b: tensor<4xf64>) -> !secure.tensor<4> {
  // CHECK-NEXT: %rows = secure.sum
  %rows = secure.sum %x over [1] : !secure.tensor<4x8> -> !secure.tensor<4>
  // CHECK-NEXT: %[[moved:.*]] = secure.convert_layout %y : !secure.tensor<4, #layout_4_every_4> -> !secure.tensor<4, #[[gaps:.*]]>
  // CHECK-NEXT: secure.add %rows, %[[moved]] : !secure.tensor<4, #[[gaps]]>, !secure.tensor<4, #[[gaps]]>
  %z = secure.add %rows, %y : !secure.tensor<4>, !secure.tensor<4>
  // CHECK-NEXT: secure.add %z, %b : !secure.tensor<4, #[[gaps]]>, tensor<4xf64>
  %u = secure.add %z, %b : !secure.tensor<4>, tensor<4xf64>
  func.return %u : !secure.tensor<4>
}

// -----

// Functions without secret tensors, and those laid out, stay as they are.
// CHECK-LABEL: func.func @public
// CHECK-NEXT: func.return
func.func @public(%x: tensor<4xf64>) -> tensor<4xf64> {
  func.return %x : tensor<4xf64>
}
