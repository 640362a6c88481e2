// RUN: %opt %s -p 'ckks-insert-relinearize{strategy=eager}' | filecheck %s --check-prefixes=CHECK,EAGER
// RUN: %opt %s -p 'ckks-insert-relinearize{strategy=lazy}' | filecheck %s --check-prefixes=CHECK,LAZY
// RUN: %opt %s -p ckks-insert-relinearize | filecheck %s --check-prefixes=CHECK,EAGER
// RUN: %opt %s -p 'ckks-insert-relinearize{strategy=lazy}' --print-debuginfo | filecheck %s --check-prefix=LOC

!ct = !ckks.ciphertext

// A sum of products: each at once, or their sum.
// CHECK-LABEL: func.func @sum(%x: !ct, %y: !ct) -> !ct {
// CHECK-NEXT:    %[[key:.*]] = fhelium.resource @relinearization : !ckks.key<relinearization>
// EAGER-NEXT:    %a = ckks.mul %x, %y : (!ct, !ct) -> !ct3
// EAGER-NEXT:    %[[a:.*]] = ckks.relinearize %a with %[[key]] : !ct3 -> !ct
// EAGER-NEXT:    %b = ckks.square %y : !ct -> !ct3
// EAGER-NEXT:    %[[b:.*]] = ckks.relinearize %b with %[[key]] : !ct3 -> !ct
// EAGER-NEXT:    %c = ckks.add %[[a]], %[[b]] : !ct
// EAGER-NEXT:    func.return %c : !ct
// LAZY-NEXT:     %a = ckks.mul %x, %y : (!ct, !ct) -> !ct3
// LAZY-NEXT:     %b = ckks.square %y : !ct -> !ct3
// LAZY-NEXT:     %c = ckks.add %a, %b : !ct3
// LAZY-NEXT:     %[[c:.*]] = ckks.relinearize %c with %[[key]] : !ct3 -> !ct
// LAZY-NEXT:     func.return %[[c]] : !ct
// LOC: ckks.relinearize {{.*}} loc("{{.*}}ckks-insert-relinearize.mlir":[[# @LINE + 4]]:
func.func @sum(%x: !ct, %y: !ct) -> !ct {
  %a = ckks.mul %x, %y : (!ct, !ct) -> !ct
  %b = ckks.square %y : !ct -> !ct
  %c = ckks.add %a, %b : !ct
  func.return %c : !ct
}

// A rotation, a conjugation and another product each need two components: one op serves them all.
// CHECK-LABEL: func.func @users
// LAZY:          %[[a:.*]] = ckks.relinearize %a
// LAZY-NEXT:     ckks.rotate %[[a]]
// LAZY-NEXT:     ckks.conjugate %[[a]]
// LAZY-NEXT:     ckks.mul %[[a]], %x
func.func @users(%x: !ct) -> (!ct, !ct, !ct) {
  %rotation = fhelium.resource @rotation_1 : !ckks.key<rotation, 1>
  %conjugation = fhelium.resource @conjugation : !ckks.key<conjugation>
  %a = ckks.square %x : !ct -> !ct
  %b = ckks.rotate %a by 1 with %rotation : !ct, !ckks.key<rotation, 1>
  %c = ckks.conjugate %a with %conjugation : !ct
  %d = ckks.mul %a, %x : (!ct, !ct) -> !ct
  func.return %b, %c, %d : !ct, !ct, !ct
}

// What is there stays: the op, and the key by its name, which moves to where all can use it.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    %key = fhelium.resource @mine : !ckks.key<relinearization>
// CHECK-NEXT:    %a = ckks.square %x
// CHECK-NEXT:    %b = ckks.relinearize %a with %key
// CHECK-NEXT:    %c = ckks.square %b
// CHECK-NEXT:    %[[c:.*]] = ckks.relinearize %c with %key
// CHECK-NEXT:    func.return %[[c]]
func.func @kept(%x: !ct) -> !ct {
  %a = ckks.square %x : !ct -> !ct
  %key = fhelium.resource @mine : !ckks.key<relinearization>
  %b = ckks.relinearize %a with %key : !ct -> !ct
  %c = ckks.square %b : !ct -> !ct
  func.return %c : !ct
}

// A sum with a value of two components can't wait.
// CHECK-LABEL: func.func @mixed
// LAZY:          %[[a:.*]] = ckks.relinearize %a
// LAZY-NEXT:     ckks.add %[[a]], %x
func.func @mixed(%x: !ct) -> !ct {
  %a = ckks.square %x : !ct -> !ct
  %b = ckks.add %a, %x : !ct
  func.return %b : !ct
}

// A loop carries three components where it adds products up.
// CHECK-LABEL: func.func @loop
// LAZY:          %sum = scf.for {{.*}} iter_args(%total = %a) -> (!ct3)
// LAZY-NOT:      relinearize
// LAZY:          scf.yield
// LAZY-NEXT:     }
// LAZY-NEXT:     ckks.relinearize %sum
func.func @loop(%x: !ct, %n: index) -> !ct {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = ckks.square %x : !ct -> !ct
  %sum = scf.for %i = %zero to %n step %one iter_args(%total = %a) -> (!ct) {
    %b = ckks.mul %x, %x : (!ct, !ct) -> !ct
    %c = ckks.add %total, %b : !ct
    scf.yield %c : !ct
  }
  func.return %sum : !ct
}

// What a loop hands on is at rest, where the values before the loop are.
// CHECK-LABEL: func.func @handed_on
// EAGER:         scf.for {{.*}} iter_args(%carried = %x) -> (!ct)
// EAGER-NEXT:    %a = ckks.square %carried : !ct -> !ct3
// EAGER-NEXT:    %[[a:.*]] = ckks.relinearize %a
// EAGER-NEXT:    scf.yield %[[a]] : !ct
func.func @handed_on(%x: !ct, %n: index) -> !ct {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %result = scf.for %i = %zero to %n step %one iter_args(%carried = %x) -> (!ct) {
    %a = ckks.square %carried : !ct -> !ct
    scf.yield %a : !ct
  }
  func.return %result : !ct
}

// A function whose components are assigned is left alone, whatever they are.
// CHECK-LABEL: func.func @assigned
// CHECK-NEXT:    %a = ckks.square %x
// CHECK-NEXT:    func.return %a
func.func @assigned(%x: !ckks.ciphertext<components = 2>) -> !ckks.ciphertext<components = 3> {
  %a = ckks.square %x : !ckks.ciphertext<components = 2> -> !ckks.ciphertext<components = 3>
  func.return %a : !ckks.ciphertext<components = 3>
}

// CHECK-LABEL: func.func @no_ciphertexts(%x: i32) -> i32 {
func.func @no_ciphertexts(%x: i32) -> i32 {
  func.return %x : i32
}
