// RUN: %opt %s -p 'ckks-insert-rescale{strategy=eager}' | filecheck %s --check-prefixes=CHECK,EAGER
// RUN: %opt %s -p 'ckks-insert-rescale{strategy=lazy}' | filecheck %s --check-prefixes=CHECK,LAZY

!ct = !ckks.ciphertext
!pt = !ckks.plaintext

// Each product at once, behind its relinearization; or their sum.
// CHECK-LABEL: func.func @sum
// EAGER-NEXT:    %a = ckks.mul %x, %y
// EAGER-NEXT:    %b = ckks.relinearize %a
// EAGER-NEXT:    %[[b:.*]] = ckks.rescale %b
// EAGER-NEXT:    %c = ckks.mul_plain %x, %p
// EAGER-NEXT:    %[[c:.*]] = ckks.rescale %c
// EAGER-NEXT:    %d = ckks.add %[[b]], %[[c]]
// EAGER-NEXT:    %e = ckks.add_plain %d, %p
// EAGER-NEXT:    func.return %e
// LAZY-NEXT:     %a = ckks.mul %x, %y
// LAZY-NEXT:     %b = ckks.relinearize %a
// LAZY-NEXT:     %c = ckks.mul_plain %x, %p
// LAZY-NEXT:     %d = ckks.add %b, %c
// LAZY-NEXT:     %e = ckks.add_plain %d, %p
// LAZY-NEXT:     %[[e:.*]] = ckks.rescale %e
// LAZY-NEXT:     func.return %[[e]]
func.func @sum(%x: !ct, %y: !ct, %p: !pt, %key: !ckks.key<relinearization>) -> !ct {
  %a = ckks.mul %x, %y : (!ct, !ct) -> !ct
  %b = ckks.relinearize %a with %key : !ct -> !ct
  %c = ckks.mul_plain %x, %p : (!ct, !pt) -> !ct
  %d = ckks.add %b, %c : !ct
  %e = ckks.add_plain %d, %p : !ct, !pt
  func.return %e : !ct
}

// What a loop hands on: a product with three components, behind its relinearization.
// CHECK-LABEL: func.func @handed_on
// EAGER:         %b = ckks.relinearize
// EAGER-NEXT:    %[[b:.*]] = ckks.rescale %b
// EAGER-NEXT:    scf.yield %[[b]]
func.func @handed_on(%x: !ct, %n: index, %key: !ckks.key<relinearization>) -> !ct {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %result = scf.for %i = %zero to %n step %one iter_args(%carried = %x) -> (!ct) {
    %a = ckks.square %carried : !ct -> !ct
    %b = ckks.relinearize %a with %key : !ct -> !ct
    scf.yield %b : !ct
  }
  func.return %result : !ct
}

// Rotations are cheaper one level down, so that both strategies rescale before one.
// CHECK-LABEL: func.func @before_rotations
// CHECK:         %a = ckks.mul_plain
// CHECK-NEXT:    %[[a:.*]] = ckks.rescale %a
// CHECK-NEXT:    ckks.rotate %[[a]]
func.func @before_rotations(%x: !ct, %p: !pt, %key: !ckks.key<rotation, 1>) -> !ct {
  %a = ckks.mul_plain %x, %p : (!ct, !pt) -> !ct
  %b = ckks.rotate %a by 1 with %key : !ct, !ckks.key<rotation, 1>
  func.return %b : !ct
}

// Products with numbers, unless they are integers.
// CHECK-LABEL: func.func @numbers
// CHECK-NEXT:    %a = ckks.mul_scalar %x, 5.000000e-01
// EAGER-NEXT:    %[[a:.*]] = ckks.rescale %a
// EAGER-NEXT:    %[[b:b]] = ckks.mul_integer %[[a]], -3 : !ct
// LAZY-NEXT:     %b = ckks.mul_integer %a, -3 : !ct
// LAZY-NEXT:     %[[b:.*]] = ckks.rescale %b
// CHECK-NEXT:    %c = ckks.mul_scalar %[[b]], 2.000000e+00 {fhelium.implementation = "mine"}
// CHECK-NEXT:    %[[c:.*]] = ckks.rescale %c
// CHECK-NEXT:    func.return %[[c]]
func.func @numbers(%x: !ct) -> !ct {
  %a = ckks.mul_scalar %x, 0.5 : !ct -> !ct
  %b = ckks.mul_scalar %a, -3.0 : !ct -> !ct
  %c = ckks.mul_scalar %b, 2.0 {fhelium.implementation = "mine"} : !ct -> !ct
  func.return %c : !ct
}

// What is there stays.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    %a = ckks.mul_scalar
// CHECK-NEXT:    %b = ckks.rescale %a
// CHECK-NEXT:    func.return %b
func.func @kept(%x: !ct) -> !ct {
  %a = ckks.mul_scalar %x, 0.5 : !ct -> !ct
  %b = ckks.rescale %a : !ct -> !ct
  func.return %b : !ct
}

// A function with a scale on each ciphertext is left alone.
!s = !ckks.ciphertext<scale = 2^30>
!s2 = !ckks.ciphertext<scale = 2^60>
// CHECK-LABEL: func.func @assigned
// CHECK-NEXT:    %a = ckks.mul_scalar
// CHECK-NEXT:    func.return %a
func.func @assigned(%x: !s) -> !s2 {
  %a = ckks.mul_scalar %x, 3.0 : !s -> !s2
  func.return %a : !s2
}
