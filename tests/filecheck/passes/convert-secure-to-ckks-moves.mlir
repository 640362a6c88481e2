// RUN: %opt %s --split-input-file -p secure-assign-layouts{slots=128},convert-secure-to-ckks | filecheck %s

// A sum of all 8 elements: three rotations, and every position has it.
// CHECK-LABEL: func.func @sum
func.func @sum(%x: !secure.tensor<8>) -> !secure.tensor<1> {
  // CHECK: %[[r1:.*]] = ckks.rotate %x by 16
  // CHECK-NEXT: %[[s1:.*]] = ckks.add %x, %[[r1]]
  // CHECK-NEXT: %[[r2:.*]] = ckks.rotate %[[s1]] by 32
  // CHECK-NEXT: %[[s2:.*]] = ckks.add %[[s1]], %[[r2]]
  // CHECK-NEXT: %[[r4:.*]] = ckks.rotate %[[s2]] by 64
  // CHECK-NEXT: %y = ckks.add %[[s2]], %[[r4]]
  %y = secure.sum %x : !secure.tensor<8> -> !secure.tensor<1>
  func.return %y : !secure.tensor<1>
}

// -----

// A sum of 5 is one of 1 and one of 4 further on: what stands beyond the fifth takes no part.
// CHECK-LABEL: func.func @odd_sum
func.func @odd_sum(%x: !secure.tensor<5>) -> !secure.tensor<1> {
  // CHECK: %[[r1:.*]] = ckks.rotate %x by 16
  // CHECK-NEXT: %[[s1:.*]] = ckks.add %x, %[[r1]]
  // CHECK-NEXT: %[[r2:.*]] = ckks.rotate %[[s1]] by 32
  // CHECK-NEXT: %[[s2:.*]] = ckks.add %[[s1]], %[[r2]]
  // CHECK-NEXT: %[[rest:.*]] = ckks.rotate %[[s2]] by 16
  // CHECK-NEXT: %y = ckks.add %x, %[[rest]]
  %y = secure.sum %x : !secure.tensor<5> -> !secure.tensor<1>
  func.return %y : !secure.tensor<1>
}

// -----

// Inner dimensions have their own stride.
// CHECK-LABEL: func.func @columns
func.func @columns(%x: !secure.tensor<4x2>) -> !secure.tensor<2> {
  // CHECK: ckks.rotate %x by 32
  // CHECK: ckks.rotate %{{.*}} by 64
  // CHECK-NOT: ckks.rotate
  %y = secure.sum %x over [0] : !secure.tensor<4x2> -> !secure.tensor<2>
  // CHECK: func.return
  func.return %y : !secure.tensor<2>
}

// -----

// A vector of the length of its period turns with the slots.
// CHECK-LABEL: func.func @turn
func.func @turn(%x: !secure.tensor<8>) -> !secure.tensor<8> {
  // CHECK: %y = ckks.rotate %x by 48
  // CHECK-NEXT: func.return
  %y = secure.rotate %x by 3 : !secure.tensor<8>
  func.return %y : !secure.tensor<8>
}

// -----

// Another one takes two masks.
// CHECK-LABEL: func.func @turn_odd
func.func @turn_odd(%x: !secure.tensor<5>) -> !secure.tensor<5> {
  // CHECK: %[[a:.*]], %[[b:.*]] = ckks.rotate_many %x by [-32, 48]
  // CHECK-NEXT: %[[m:.*]] = secure.mask [2, 3, 4] every 8 batch 16 : tensor<128xf64>
  // CHECK-NEXT: %[[p:.*]] = ckks.encode %[[m]]
  // CHECK-NEXT: %[[n:.*]] = secure.mask [0, 1] every 8 batch 16 : tensor<128xf64>
  // CHECK-NEXT: %[[q:.*]] = ckks.encode %[[n]]
  // CHECK-NEXT: %y = ckks.weighted_sum %[[a]], %[[b]] by %[[p]], %[[q]]
  %y = secure.rotate %x by 3 : !secure.tensor<5>
  func.return %y : !secure.tensor<5>
}

// -----

// A longer period is there already; another order is a product with masks.
#a = #secure.layout<slots = 16, batch = 2, period = 4, grid = [4], strides = [1]>
#b = #secure.layout<slots = 16, batch = 2, period = 8, grid = [4], strides = [1]>
#c = #secure.layout<slots = 16, batch = 2, period = 8, grid = [4], strides = [2]>
// CHECK-LABEL: func.func @convert
func.func @convert(%x: !secure.tensor<4, #a>) -> (!secure.tensor<4, #b>, !secure.tensor<4, #c>) {
  %y = secure.convert_layout %x : !secure.tensor<4, #a> -> !secure.tensor<4, #b>
  // CHECK-NOT: ckks.add
  // CHECK: secure.mask
  // CHECK: ckks.weighted_sum
  %z = secure.convert_layout %x : !secure.tensor<4, #a> -> !secure.tensor<4, #c>
  // CHECK: func.return %x, %
  func.return %y, %z : !secure.tensor<4, #b>, !secure.tensor<4, #c>
}
