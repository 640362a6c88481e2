// RUN: %roundtrip
// RUN: %generic-roundtrip

// Layouts and the ops that packing makes.

#dense = #secure.layout<slots = 64, batch = 4, period = 16, grid = [8], strides = [1]>
// The fields may come in any order.
#gaps = #secure.layout<strides = [8, 2], grid = [2, 4], period = 16, batch = 4, slots = 64>
#rows = #secure.layout<slots = 64, batch = 4, period = 8, grid = [5], strides = [1]>

// CHECK:      #layout_8_every_16 = #secure.layout<slots = 64, batch = 4, period = 16, grid = [8], strides = [1]>
// CHECK-NEXT: #layout_2x4_every_16 = #secure.layout<slots = 64, batch = 4, period = 16, grid = [2, 4], strides = [8, 2]>
// CHECK-NEXT: #layout_5_every_8 = #secure.layout<slots = 64, batch = 4, period = 8, grid = [5], strides = [1]>
// CHECK-NEXT: #diagonals_5x8 = #secure.diagonals<rows = #layout_5_every_8, columns = #layout_8_every_16>

// CHECK-LABEL: func.func @main(%x: !secure.tensor<2x4, #layout_8_every_16>)
func.func @main(%x: !secure.tensor<2x4, #dense>) -> !secure.tensor<2x4, #gaps> {
  // CHECK-NEXT: %{{.*}} = secure.convert_layout %x : !secure.tensor<2x4, #layout_8_every_16> -> !secure.tensor<2x4, #layout_2x4_every_16>
  %y = secure.convert_layout %x : !secure.tensor<2x4, #dense> -> !secure.tensor<2x4, #gaps>
  func.return %y : !secure.tensor<2x4, #gaps>
}

// CHECK-LABEL: func.func @public
func.func @public(%k: tensor<4x1x3x3xf64>, %w: tensor<5x8xf64>, %b: tensor<5xf64>) {
  // CHECK-NEXT: secure.toeplitz %k on [2, 8, 8] stride [2, 1] padding [1, 0] groups 2 : tensor<4x1x3x3xf64> -> tensor<96x128xf64>
  %t = secure.toeplitz %k on [2, 8, 8] stride [2, 1] padding [1, 0] groups 2 : tensor<4x1x3x3xf64> -> tensor<96x128xf64>
  // CHECK-NEXT: secure.diagonal %w by 3 shifted -2 in #diagonals_5x8 : tensor<5x8xf64> -> tensor<64xf64>
  %d = secure.diagonal %w by 3 shifted -2 in #secure.diagonals<rows = #rows, columns = #dense> : tensor<5x8xf64> -> tensor<64xf64>
  // CHECK-NEXT: secure.mask [0, 3] every 8 batch 4 : tensor<64xf64>
  %m = secure.mask [0, 3] every 8 batch 4 : tensor<64xf64>
  // CHECK-NEXT: secure.pack %b to #layout_5_every_8 : tensor<5xf64> -> tensor<64xf64>
  %p = secure.pack %b to #rows : tensor<5xf64> -> tensor<64xf64>
  func.return
}
