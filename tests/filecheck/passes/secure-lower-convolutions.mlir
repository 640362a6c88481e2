// RUN: %opt %s -p secure-lower-convolutions | filecheck %s
// RUN: %opt %s -p secure-lower-convolutions,secure-lower-convolutions | filecheck %s

// A convolution is the product of the matrix that its kernel stands for and the flat image.
// CHECK-LABEL: func.func @main
func.func @main(%x: !secure.tensor<2x8x8>) -> !secure.tensor<4x4x3> {
  // CHECK-NEXT: %k = fhelium.material @k
  %k = fhelium.material @k : tensor<4x1x3x3xf64>
  // CHECK-NEXT: %[[matrix:.*]] = secure.toeplitz %k on [2, 8, 8] stride [2, 2] padding [1, 0] groups 2 : tensor<4x1x3x3xf64> -> tensor<48x128xf64>
  // CHECK-NEXT: %[[flat:.*]] = secure.reshape %x : !secure.tensor<2x8x8> -> !secure.tensor<128>
  // CHECK-NEXT: %[[product:.*]] = secure.matvec %[[matrix]], %[[flat]] : tensor<48x128xf64>, !secure.tensor<128> -> !secure.tensor<48>
  // CHECK-NEXT: %[[result:.*]] = secure.reshape %[[product]] : !secure.tensor<48> -> !secure.tensor<4x4x3>
  %y = secure.conv2d %k, %x stride [2, 2] padding [1, 0] groups 2 : tensor<4x1x3x3xf64>, !secure.tensor<2x8x8> -> !secure.tensor<4x4x3>
  // CHECK-NEXT: func.return %[[result]]
  func.return %y : !secure.tensor<4x4x3>
}

// What records an implementation stays.
// CHECK-LABEL: func.func @assigned
func.func @assigned(%k: tensor<4x2x3x3xf64>, %x: !secure.tensor<2x8x8>) -> !secure.tensor<4x6x6> {
  // CHECK-NEXT: secure.conv2d %k, %x {fhelium.implementation = "mine"}
  %y = secure.conv2d %k, %x {fhelium.implementation = "mine"} : tensor<4x2x3x3xf64>, !secure.tensor<2x8x8> -> !secure.tensor<4x6x6>
  func.return %y : !secure.tensor<4x6x6>
}
