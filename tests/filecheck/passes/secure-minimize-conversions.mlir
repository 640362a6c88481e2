// RUN: %opt %s --split-input-file -p secure-minimize-conversions | filecheck %s
// RUN: %opt %s --split-input-file -p secure-minimize-conversions,secure-minimize-conversions | filecheck %s

// A product with a matrix gives the layout that its user wants, here through ops on elements.
#dense = #secure.layout<slots = 128, batch = 2, period = 16, grid = [8], strides = [1]>
#gaps = #secure.layout<slots = 128, batch = 2, period = 16, grid = [8], strides = [2]>
// CHECK-LABEL: func.func @into_producer
func.func @into_producer(%w: tensor<8x8xf64>, %x: !secure.tensor<8, #dense>, %y: !secure.tensor<8, #gaps>, %b: tensor<8xf64>) -> !secure.tensor<8, #gaps> {
  // CHECK-NEXT: %a = secure.matvec %w, %x : tensor<8x8xf64>, !secure.tensor<8, #[[dense:.*]]> -> !secure.tensor<8, #[[gaps:.*]]>
  %a = secure.matvec %w, %x : tensor<8x8xf64>, !secure.tensor<8, #dense> -> !secure.tensor<8, #dense>
  // CHECK-NEXT: %c = secure.add %a, %b : !secure.tensor<8, #[[gaps]]>, tensor<8xf64>
  %c = secure.add %a, %b : !secure.tensor<8, #dense>, tensor<8xf64>
  // CHECK-NEXT: %e = secure.add %c, %y : !secure.tensor<8, #[[gaps]]>, !secure.tensor<8, #[[gaps]]>
  %d = secure.convert_layout %c : !secure.tensor<8, #dense> -> !secure.tensor<8, #gaps>
  %e = secure.add %d, %y : !secure.tensor<8, #gaps>, !secure.tensor<8, #gaps>
  func.return %e : !secure.tensor<8, #gaps>
}

// -----

// An argument is packed in the layout that its user wants.
#dense = #secure.layout<slots = 128, batch = 2, period = 16, grid = [8], strides = [1]>
#gaps = #secure.layout<slots = 128, batch = 2, period = 16, grid = [8], strides = [2]>
// CHECK: #[[gaps:.*]] = #secure.layout<{{.*}}strides = [2]>
// CHECK: func.func @into_argument(%x: !secure.tensor<8, #[[gaps]]>, %y: !secure.tensor<8, #[[gaps]]>)
func.func @into_argument(%x: !secure.tensor<8, #dense>, %y: !secure.tensor<8, #gaps>) -> !secure.tensor<8, #gaps> {
  // CHECK-NEXT: %b = secure.mul %y, %x : !secure.tensor<8, #[[gaps]]>, !secure.tensor<8, #[[gaps]]>
  %a = secure.convert_layout %x : !secure.tensor<8, #dense> -> !secure.tensor<8, #gaps>
  %b = secure.mul %y, %a : !secure.tensor<8, #gaps>, !secure.tensor<8, #gaps>
  func.return %b : !secure.tensor<8, #gaps>
}

// -----

// A product with a matrix takes what comes, and a result leaves as it is. The sum is where it is.
#dense = #secure.layout<slots = 128, batch = 2, period = 8, grid = [8], strides = [1]>
#gaps = #secure.layout<slots = 128, batch = 2, period = 64, grid = [8], strides = [8]>
#grid = #secure.layout<slots = 128, batch = 2, period = 64, grid = [64], strides = [1]>
// CHECK: #[[gaps:.*]] = #secure.layout<{{.*}}strides = [8]>
// CHECK-LABEL: func.func @into_users
func.func @into_users(%w: tensor<8x8xf64>, %x: !secure.tensor<8x8, #grid>) -> (!secure.tensor<8, #dense>, !secure.tensor<8, #dense>) {
  // CHECK-NEXT: %a = secure.sum
  %a = secure.sum %x over [1] : !secure.tensor<8x8, #grid> -> !secure.tensor<8, #gaps>
  %b = secure.convert_layout %a : !secure.tensor<8, #gaps> -> !secure.tensor<8, #dense>
  // CHECK-NEXT: %c = secure.negate %a : !secure.tensor<8, #[[gaps]]>
  %c = secure.negate %b : !secure.tensor<8, #dense>
  // CHECK-NEXT: %d = secure.matvec %w, %c : tensor<8x8xf64>, !secure.tensor<8, #[[gaps]]> -> !secure.tensor<8, #[[dense:.*]]>
  %d = secure.matvec %w, %c : tensor<8x8xf64>, !secure.tensor<8, #dense> -> !secure.tensor<8, #dense>
  // CHECK-NEXT: func.return %d, %c : !secure.tensor<8, #[[dense]]>, !secure.tensor<8, #[[gaps]]>
  func.return %d, %c : !secure.tensor<8, #dense>, !secure.tensor<8, #dense>
}

// -----

// Conversions that follow each other are one, and one to the same layout is none.
#a = #secure.layout<slots = 128, batch = 2, period = 64, grid = [8], strides = [1]>
#b = #secure.layout<slots = 128, batch = 2, period = 64, grid = [8], strides = [2]>
#c = #secure.layout<slots = 128, batch = 2, period = 64, grid = [8], strides = [3]>
// CHECK-LABEL: func.func @chains
func.func @chains(%x: !secure.tensor<8, #a>) -> (!secure.tensor<8, #a>, !secure.tensor<8, #c>) {
  // CHECK-NEXT: %r = secure.rotate %x
  %r = secure.rotate %x by 3 : !secure.tensor<8, #a>
  %0 = secure.convert_layout %r : !secure.tensor<8, #a> -> !secure.tensor<8, #a>
  // CHECK-NEXT: %s = secure.rotate %r
  %s = secure.rotate %0 by 3 : !secure.tensor<8, #a>
  %1 = secure.convert_layout %s : !secure.tensor<8, #a> -> !secure.tensor<8, #b>
  // CHECK-NEXT: %[[moved:.*]] = secure.convert_layout %s : !secure.tensor<8, #[[a:.*]]> -> !secure.tensor<8, #[[c:.*]]>
  %2 = secure.convert_layout %1 : !secure.tensor<8, #b> -> !secure.tensor<8, #c>
  // CHECK-NEXT: %[[turned:.*]] = secure.rotate %[[moved]]
  %3 = secure.rotate %2 by 1 : !secure.tensor<8, #c>
  // CHECK-NEXT: func.return %s, %[[turned]]
  func.return %s, %3 : !secure.tensor<8, #a>, !secure.tensor<8, #c>
}

// -----

// Where nothing is spared a conversion stays: both rotations want their own layout.
#a = #secure.layout<slots = 128, batch = 2, period = 64, grid = [8], strides = [1]>
#b = #secure.layout<slots = 128, batch = 2, period = 64, grid = [8], strides = [2]>
// CHECK-LABEL: func.func @kept
func.func @kept(%x: !secure.tensor<8, #a>) -> !secure.tensor<8, #b> {
  // CHECK-NEXT: secure.rotate
  %r = secure.rotate %x by 3 : !secure.tensor<8, #a>
  // CHECK-NEXT: secure.convert_layout
  %c = secure.convert_layout %r : !secure.tensor<8, #a> -> !secure.tensor<8, #b>
  // CHECK-NEXT: secure.rotate
  %s = secure.rotate %c by 3 : !secure.tensor<8, #b>
  func.return %s : !secure.tensor<8, #b>
}
