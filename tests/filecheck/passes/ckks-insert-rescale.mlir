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

// Levels that a user wrote stay, also on the product.
!c2 = !ckks.ciphertext<level = 2>
// CHECK-LABEL: func.func @levels_by_hand
// CHECK-NEXT:    %a = ckks.mul %x, %y : (!ct_L2, !ct_L2) -> !ct_L2
// CHECK-NEXT:    %[[a:.*]] = ckks.rescale %a : !ct_L2 -> !ct
// CHECK-NEXT:    %b = ckks.mul %[[a]], %y : (!ct, !ct_L2) -> !ct
// CHECK-NEXT:    %[[b:.*]] = ckks.rescale %b : !ct -> !ct
// CHECK-NEXT:    %c = ckks.mul_scalar %[[a]]
// CHECK-NEXT:    %[[c:.*]] = ckks.rescale %c
// CHECK-NEXT:    ckks.decrypt %[[a]]
// CHECK-NEXT:    func.return %[[b]], %[[c]]
func.func @levels_by_hand(%x: !c2, %y: !c2, %key: !ckks.client_key<secret>) -> (!ct, !ct) {
  %a = ckks.mul %x, %y : (!c2, !c2) -> !c2
  %b = ckks.mul %a, %y : (!c2, !c2) -> !ct
  %c = ckks.mul_scalar %a, 0.5 : !c2 -> !ct
  %d = ckks.decrypt %a with %key : !c2 -> !pt
  func.return %b, %c : !ct, !ct
}

// A result that nothing uses, where the op has others: it stays, so what it takes is rescaled.
// CHECK-LABEL: func.func @unused_result
// CHECK:         %a = ckks.mul_plain
// CHECK-NEXT:    %[[a:.*]] = ckks.rescale %a
// CHECK-NEXT:    scf.yield %x, %[[a]]
// CHECK:         scf.yield %y, %y
func.func @unused_result(%x: !ct, %y: !ct, %p: !pt, %flag: i1) -> !ct {
  %used, %unused = scf.if %flag -> (!ct, !ct) {
    %a = ckks.mul_plain %x, %p : (!ct, !pt) -> !ct
    scf.yield %x, %a : !ct, !ct
  } else {
    scf.yield %y, %y : !ct, !ct
  }
  func.return %used : !ct
}

// The same around a loop. What the loop starts with is rescaled as well.
// CHECK-LABEL: func.func @unused_carried
// CHECK-NEXT:    %a = ckks.mul_plain
// CHECK-NEXT:    %[[a:.*]] = ckks.rescale %a
// CHECK:         scf.for {{.*}} iter_args(%u = %x, %v = %[[a]])
// CHECK-NEXT:      %b = ckks.add %v, %[[a]]
// CHECK-NEXT:      scf.yield %y, %b
func.func @unused_carried(%x: !ct, %y: !ct, %p: !pt, %n: index) -> !ct {
  %a = ckks.mul_plain %x, %p : (!ct, !pt) -> !ct
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %used, %unused = scf.for %i = %zero to %n step %one iter_args(%u = %x, %v = %a) -> (!ct, !ct) {
    %b = ckks.add %v, %a : !ct
    scf.yield %y, %b : !ct, !ct
  }
  func.return %used : !ct
}
