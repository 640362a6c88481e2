// RUN: %opt %s -p secure-assign-layouts{slots=128},convert-secure-to-ckks | filecheck %s
// RUN: %opt %s -p secure-assign-layouts{slots=128},convert-secure-to-ckks,convert-secure-to-ckks | filecheck %s
// RUN: %opt %s -p secure-assign-layouts{slots=128},convert-secure-to-ckks --print-debuginfo | filecheck %s --check-prefix=PLACE

// CHECK: builtin.module attributes {secure.slots = 128 : i64}

// Arguments and results remember the tensor that they hold, for the client.
// CHECK-LABEL: func.func @elementwise(%x: !ct {secure.type = !secure.tensor<2x3, #layout_6_every_8>}, %b: tensor<2x3xf64>) -> (!ct {secure.type = !secure.tensor<2x3, #layout_6_every_8>})
// CHECK-SAME: secure.cost = {rotations = 0 : i64, products = 2 : i64, key_switches = 2 : i64, decompositions = 2 : i64, plain_products = 1 : i64}
func.func @elementwise(%x: !secure.tensor<2x3>, %b: tensor<2x3xf64>) -> !secure.tensor<2x3> {
  %two = arith.constant dense<2.0> : tensor<2x3xf64>
  // CHECK: %a = ckks.square %x : !ct -> !ct
  %a = secure.mul %x, %x : !secure.tensor<2x3>, !secure.tensor<2x3>
  // CHECK-NEXT: %c = ckks.mul %a, %x : (!ct, !ct) -> !ct
  %c = secure.mul %a, %x : !secure.tensor<2x3>, !secure.tensor<2x3>
  // CHECK-NEXT: %d = ckks.sub %c, %x : !ct
  %d = secure.sub %c, %x : !secure.tensor<2x3>, !secure.tensor<2x3>
  // CHECK-NEXT: %e = ckks.negate %d : !ct
  %e = secure.negate %d : !secure.tensor<2x3>
  // A constant with equal elements is a number.
  // CHECK-NEXT: %f = ckks.mul_scalar %e, 2.0{{.*}} : !ct -> !ct
  %f = secure.mul %e, %two : !secure.tensor<2x3>, tensor<2x3xf64>
  // CHECK-NEXT: %g = ckks.add_scalar %f, 2.0
  %g = secure.add %f, %two : !secure.tensor<2x3>, tensor<2x3xf64>
  // CHECK-NEXT: %h = ckks.add_scalar %g, -2.0
  %h = secure.sub %g, %two : !secure.tensor<2x3>, tensor<2x3xf64>
  // Another public tensor is packed and encoded.
  // CHECK-NEXT: %[[slots:.*]] = secure.pack %b to #layout_6_every_8 : tensor<2x3xf64> -> tensor<128xf64>
  // CHECK-NEXT: %[[pt:.*]] = ckks.encode %[[slots]] : tensor<128xf64> -> !pt
  // CHECK-NEXT: %i = ckks.add_plain %h, %[[pt]] : !ct, !pt
  // PLACE: %i = ckks.add_plain {{.*}} loc("{{.*}}ckks.mlir":[[# @LINE + 1]]:8)
  %i = secure.add %h, %b : !secure.tensor<2x3>, tensor<2x3xf64>
  // CHECK: %j = ckks.sub_plain %i
  %j = secure.sub %i, %b : !secure.tensor<2x3>, tensor<2x3xf64>
  // CHECK: %k = ckks.mul_plain %j
  %k = secure.mul %j, %b : !secure.tensor<2x3>, tensor<2x3xf64>
  // A reshape moves nothing.
  // CHECK-NEXT: %m = ckks.add %k, %k : !ct
  %l = secure.reshape %k : !secure.tensor<2x3> -> !secure.tensor<6>
  %m = secure.add %l, %l : !secure.tensor<6>, !secure.tensor<6>
  %n = secure.reshape %m : !secure.tensor<6> -> !secure.tensor<2x3>
  // CHECK-NEXT: func.return %m : !ct
  func.return %n : !secure.tensor<2x3>
}

// 16 diagonals: 3 baby steps that share a decomposition, 3 giant steps. A batch of 8 has 8 slots a
// position.
// CHECK-LABEL: func.func @square
// CHECK-SAME: secure.cost = {rotations = 6 : i64, products = 0 : i64, key_switches = 6 : i64, decompositions = 4 : i64, plain_products = 16 : i64}
func.func @square(%x: !secure.tensor<16>, %w: tensor<16x16xf64>) -> !secure.tensor<16> {
  // Keys stand first, each once.
  // CHECK-NEXT: %[[k8:.*]] = fhelium.resource @rotation_8 : !ckks.key<rotation, 8>
  // CHECK-NEXT: %[[k16:.*]] = fhelium.resource @rotation_16
  // CHECK-NEXT: %[[k24:.*]] = fhelium.resource @rotation_24
  // CHECK-NEXT: %[[m64:.*]] = fhelium.resource @rotation_64
  // CHECK-NEXT: %[[m32:.*]] = fhelium.resource @rotation_minus_32
  // CHECK-NEXT: %[[k32:.*]] = fhelium.resource @rotation_32
  // CHECK-NEXT: %[[b1:.*]], %[[b2:.*]], %[[b3:.*]] = ckks.rotate_many %x by [8, 16, 24] with %[[k8]], %[[k16]], %[[k24]]
  // CHECK-NEXT: %[[d0:.*]] = secure.diagonal %w by -8 shifted -8 in #diagonals_16x16 : tensor<16x16xf64> -> tensor<128xf64>
  // CHECK-NEXT: %[[p0:.*]] = ckks.encode %[[d0]]
  // CHECK-NEXT: secure.diagonal %w by -7 shifted -8
  // CHECK: ckks.weighted_sum %x, %[[b1]], %[[b2]], %[[b3]] by %[[p0]]
  // CHECK: ckks.rotate {{.*}} by 64 with %[[m64]]
  // CHECK: ckks.rotate {{.*}} by -32 with %[[m32]]
  // CHECK: secure.diagonal %w by 0 shifted 0
  // CHECK: ckks.rotate {{.*}} by 32 with %[[k32]]
  %y = secure.matvec %w, %x : tensor<16x16xf64>, !secure.tensor<16> -> !secure.tensor<16>
  // CHECK-NEXT: %y = ckks.add
  // CHECK-NEXT: func.return %y
  func.return %y : !secure.tensor<16>
}

// Rows that repeat four times as often as the columns: 4 diagonals, then two rotations to add up.
// CHECK-LABEL: func.func @wide
// CHECK-SAME: secure.cost = {rotations = 4 : i64, products = 0 : i64, key_switches = 4 : i64, decompositions = 4 : i64, plain_products = 4 : i64}
func.func @wide(%x: !secure.tensor<16>, %w: tensor<4x16xf64>) -> !secure.tensor<4> {
  // CHECK: %[[sum:.*]] = ckks.add
  // CHECK-NEXT: %[[r32:.*]] = ckks.rotate %[[sum]] by 32
  // CHECK-NEXT: %[[sum2:.*]] = ckks.add %[[sum]], %[[r32]]
  // CHECK-NEXT: %[[r64:.*]] = ckks.rotate %[[sum2]] by 64
  // CHECK-NEXT: %y = ckks.add %[[sum2]], %[[r64]]
  %y = secure.matvec %w, %x : tensor<4x16xf64>, !secure.tensor<16> -> !secure.tensor<4>
  func.return %y : !secure.tensor<4>
}

// Diagonals that are known to be zero are left out, and one of zeros stands for a zero matrix.
// CHECK-LABEL: func.func @sparse
// CHECK-SAME: rotations = 0 : i64, {{.*}} plain_products = 2 : i64
func.func @sparse(%x: !secure.tensor<2>) -> !secure.tensor<2> {
  %w = arith.constant dense<[[1.0, 0.0], [0.0, 3.0]]> : tensor<2x2xf64>
  %z = arith.constant dense<0.0> : tensor<2x2xf64>
  // CHECK: secure.diagonal %w by 0 shifted 0
  // CHECK: ckks.mul_plain %x
  %y = secure.matvec %w, %x : tensor<2x2xf64>, !secure.tensor<2> -> !secure.tensor<2>
  %u = secure.matvec %z, %y : tensor<2x2xf64>, !secure.tensor<2> -> !secure.tensor<2>
  func.return %u : !secure.tensor<2>
}
