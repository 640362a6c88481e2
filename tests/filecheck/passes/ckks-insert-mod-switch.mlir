// RUN: %opt %s -p ckks-insert-mod-switch | filecheck %s

!ct = !ckks.ciphertext

// A value that a sum needs lower goes there by a product with 1, over several levels at once.
// CHECK-LABEL: func.func @sum
// CHECK-NEXT:    %a = ckks.mul_scalar %x
// CHECK-NEXT:    %b = ckks.rescale %a
// CHECK-NEXT:    %c = ckks.mul_scalar %b
// CHECK-NEXT:    %d = ckks.rescale %c
// CHECK-NEXT:    %[[switched:.*]] = ckks.mod_switch %x
// CHECK-NEXT:    %[[product:.*]] = ckks.mul_scalar %[[switched]], 1.000000e+00
// CHECK-NEXT:    %[[x:.*]] = ckks.rescale %[[product]]
// CHECK-NEXT:    %e = ckks.add %d, %[[x]]
// CHECK-NEXT:    %f = ckks.sub %e, %[[x]]
// CHECK-NEXT:    func.return %f
func.func @sum(%x: !ct) -> !ct {
  %a = ckks.mul_scalar %x, 0.5 : !ct -> !ct
  %b = ckks.rescale %a : !ct -> !ct
  %c = ckks.mul_scalar %b, 0.5 : !ct -> !ct
  %d = ckks.rescale %c : !ct -> !ct
  %e = ckks.add %d, %x : !ct
  %f = ckks.sub %e, %x : !ct
  func.return %f : !ct
}

// A product with a number or plaintext makes up for the scale.
// CHECK-LABEL: func.func @product_with_a_number
// CHECK:         %[[x:.*]] = ckks.mod_switch %x
// CHECK-NEXT:    %c = ckks.mul_scalar %[[x]], 2.500000e-01
// CHECK-NEXT:    %d = ckks.add %a, %c
func.func @product_with_a_number(%x: !ct, %key: !ckks.key<relinearization>) -> !ct {
  %square = ckks.square %x : !ct -> !ct
  %two = ckks.relinearize %square with %key : !ct -> !ct
  %b = ckks.rescale %two : !ct -> !ct
  %a = ckks.mul_scalar %b, 0.5 : !ct -> !ct
  %c = ckks.mul_scalar %x, 0.25 : !ct -> !ct
  %d = ckks.add %a, %c : !ct
  %e = ckks.rescale %d : !ct -> !ct
  func.return %e : !ct
}

// A sum at a level that only another user of its terms needs drops its result; a rotation drops
// its operand.
// CHECK-LABEL: func.func @where
// CHECK:         %s = ckks.add %x, %y
// CHECK-NEXT:    %[[product:.*]] = ckks.mul_scalar %s, 1.000000e+00
// CHECK-NEXT:    %[[s:.*]] = ckks.rescale %[[product]]
// CHECK-NEXT:    %t = ckks.rotate %[[s]]
// CHECK-NEXT:    %u = ckks.add %b, %t
func.func @where(%x: !ct, %y: !ct, %key: !ckks.key<rotation, 1>) -> (!ct, !ct) {
  %a = ckks.mul_scalar %x, 0.5 : !ct -> !ct
  %b = ckks.rescale %a : !ct -> !ct
  %c = ckks.mul_scalar %y, 0.5 : !ct -> !ct
  %d = ckks.rescale %c : !ct -> !ct
  %s = ckks.add %x, %y : !ct
  %t = ckks.rotate %s by 1 with %key : !ct, !ckks.key<rotation, 1>
  %u = ckks.add %b, %t : !ct
  func.return %u, %d : !ct, !ct
}

// Inputs come at the level that they are needed at: nothing to do.
// CHECK-LABEL: func.func @inputs
// CHECK-NOT:     mod_switch
// CHECK-NOT:     1.000000e+00
// CHECK:         func.return
func.func @inputs(%x: !ct, %y: !ct) -> !ct {
  %a = ckks.mul_scalar %x, 0.5 : !ct -> !ct
  %b = ckks.rescale %a : !ct -> !ct
  %c = ckks.add %b, %y : !ct
  func.return %c : !ct
}

// An assigned level is kept: here the input is above what is needed.
// CHECK-LABEL: func.func @assigned_input
// CHECK-NEXT:    %[[x:.*]] = ckks.mod_switch %x : !ct_L3 -> !ct
// CHECK-NEXT:    %a = ckks.mul_scalar %[[x]], 5.000000e-01 : !ct -> !ct
func.func @assigned_input(%x: !ckks.ciphertext<level = 3>) -> !ct {
  %a = ckks.mul_scalar %x, 0.5 : !ckks.ciphertext<level = 3> -> !ct
  %b = ckks.rescale %a : !ct -> !ct
  func.return %b : !ct
}

// A function with a level on each ciphertext is left alone.
// CHECK-LABEL: func.func @assigned
// CHECK-NEXT:    %a = ckks.mod_switch
// CHECK-NEXT:    func.return %a
func.func @assigned(%x: !ckks.ciphertext<level = 3>) -> !ckks.ciphertext<level = 1> {
  %a = ckks.mod_switch %x : !ckks.ciphertext<level = 3> -> !ckks.ciphertext<level = 1>
  func.return %a : !ckks.ciphertext<level = 1>
}

// What a loop carries stays at its level, and what comes from outside of it drops inside.
// CHECK-LABEL: func.func @loop
// CHECK:         scf.for
// CHECK:           ckks.add %total, %[[x:.*]] :
// CHECK:         }
func.func @loop(%x: !ct, %n: index) -> (!ct, !ct) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = ckks.mul_scalar %x, 0.5 : !ct -> !ct
  %b = ckks.rescale %a : !ct -> !ct
  %sum = scf.for %i = %zero to %n step %one iter_args(%total = %b) -> (!ct) {
    %c = ckks.add %total, %x : !ct
    scf.yield %c : !ct
  }
  func.return %sum, %b : !ct, !ct
}
