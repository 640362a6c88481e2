// RUN: %opt %s -p ckks-assign-levels | filecheck %s

!ct = !ckks.ciphertext
!pt = !ckks.plaintext

// Results come out at level 0; an encoding is repeated for each level that it is used at.
// CHECK-LABEL: func.func @main(%x: !ct_L2, %y: !ct_L1, %v: tensor<4xf64>) -> !ct_L0 {
// CHECK-NEXT:    %p = ckks.encode %v : tensor<4xf64> -> !pt_L2
// CHECK-NEXT:    %[[p:.*]] = ckks.encode %v : tensor<4xf64> -> !pt_L1
// CHECK-NEXT:    %a = ckks.mul_plain %x, %p : (!ct_L2, !pt_L2) -> !ct_L2
// CHECK-NEXT:    %b = ckks.rescale %a : !ct_L2 -> !ct_L1
// CHECK-NEXT:    %c = ckks.add %b, %y : !ct_L1
// CHECK-NEXT:    %d = ckks.mul_plain %c, %[[p]] : (!ct_L1, !pt_L1) -> !ct_L1
// CHECK-NEXT:    %e = ckks.rescale %d : !ct_L1 -> !ct_L0
func.func @main(%x: !ct, %y: !ct, %v: tensor<4xf64>) -> !ct {
  %p = ckks.encode %v : tensor<4xf64> -> !pt
  %a = ckks.mul_plain %x, %p : (!ct, !pt) -> !ct
  %b = ckks.rescale %a : !ct -> !ct
  %c = ckks.add %b, %y : !ct
  %d = ckks.mul_plain %c, %p : (!ct, !pt) -> !ct
  %e = ckks.rescale %d : !ct -> !ct
  func.return %e : !ct
}

// A mod_switch takes what it has to.
// CHECK-LABEL: func.func @switch(%x: !ct_L2) -> (!ct_L0, !ct_L0) {
// CHECK:         ckks.mod_switch %x : !ct_L2 -> !ct_L0
func.func @switch(%x: !ct) -> (!ct, !ct) {
  %a = ckks.rescale %x : !ct -> !ct
  %b = ckks.rescale %a : !ct -> !ct
  %c = ckks.mod_switch %x : !ct -> !ct
  %d = ckks.add %c, %b : !ct
  func.return %b, %d : !ct, !ct
}

// An assigned level is kept, and so is the form.
// CHECK-LABEL: func.func @given(%x: !ct_L5) -> (!ct_L4, !ct_L4_coeff) {
// CHECK-NEXT:    ckks.rescale %x : !ct_L5 -> !ct_L4
func.func @given(%x: !ckks.ciphertext<level = 5>) -> (!ct, !ct) {
  %a = ckks.rescale %x : !ckks.ciphertext<level = 5> -> !ct
  %b = ckks.to_coefficient %a : !ct -> !ct
  func.return %a, %b : !ct, !ct
}

// Plaintexts from outside, and what the client does inside of a program.
// CHECK-LABEL: func.func @plaintexts(%p: !pt_L1, %v: tensor<4xf64>) -> tensor<4xf64> {
// CHECK:         %m = fhelium.material @m : !pt_L1
// CHECK:         %q = ckks.encode %v : tensor<4xf64> -> !pt_L1
// CHECK:         %x = ckks.encrypt %q with %public : !pt_L1, {{.*}} -> !ct_L1
// CHECK:         %unused = ckks.encode %v : tensor<4xf64> -> !pt_L0
// CHECK:         %c = ckks.decrypt %b with %secret : !ct_L0 -> !pt_L0
func.func @plaintexts(%p: !pt, %v: tensor<4xf64>) -> tensor<4xf64> {
  %public = fhelium.resource @public : !ckks.client_key<public>
  %secret = fhelium.resource @secret : !ckks.client_key<secret>
  %m = fhelium.material @m : !pt
  %q = ckks.encode %v : tensor<4xf64> -> !pt
  %x = ckks.encrypt %q with %public : !pt, !ckks.client_key<public> -> !ct
  %unused = ckks.encode %v : tensor<4xf64> -> !pt
  %a = ckks.weighted_sum %x, %x by %p, %m : (!ct, !ct, !pt, !pt) -> !ct
  %b = ckks.rescale %a : !ct -> !ct
  %c = ckks.decrypt %b with %secret : !ct -> !pt
  %d = ckks.decode %c : !pt -> tensor<4xf64>
  func.return %d : tensor<4xf64>
}

// What is assigned to a plaintext that nothing takes is kept.
// CHECK-LABEL: func.func @unused(
// CHECK-SAME:    %p: !pt_L3, %q: !pt_L0_coeff) -> (!ct_L0, !pt_L3) {
// CHECK-NEXT:    %e = ckks.encode %v : tensor<4xf64> -> !pt_L2
func.func @unused(%x: !ct, %v: tensor<4xf64>, %p: !ckks.plaintext<level = 3>, %q: !ckks.plaintext<form = coefficient>) -> (!ct, !ckks.plaintext<level = 3>) {
  %e = ckks.encode %v : tensor<4xf64> -> !ckks.plaintext<level = 2>
  func.return %x, %p : !ct, !ckks.plaintext<level = 3>
}
