// RUN: %opt %s -p ckks-reorder-sums | filecheck %s
// RUN: %opt %s -p 'ckks-reorder-sums,ckks-reorder-sums' | filecheck %s
// RUN: %opt %s -p 'ckks-reorder-sums,ckks-insert-relinearize{strategy=lazy},ckks-insert-rescale{strategy=lazy}' | filecheck %s --check-prefix=PLACED

!ct = !ckks.ciphertext

// Products first, then scaled values, then others; a number is added to all of it.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %a = ckks.mul %x, %y
// CHECK-NEXT:    %b = ckks.mul_scalar %x
// CHECK-NEXT:    %d = ckks.square %y
// CHECK-NEXT:    %[[products:.*]] = ckks.add %d, %a
// CHECK-NEXT:    %[[scaled:.*]] = ckks.sub %[[products]], %b
// CHECK-NEXT:    %[[all:.*]] = ckks.add %[[scaled]], %x
// CHECK-NEXT:    %[[result:.*]] = ckks.add_scalar %[[all]], -2.500000e-01
// CHECK-NEXT:    func.return %[[result]]
// PLACED-LABEL: func.func @main
// PLACED-COUNT-1: ckks.relinearize
// PLACED-NOT:     ckks.relinearize
// PLACED-LABEL: func.func @left_alone
func.func @main(%x: !ct, %y: !ct) -> !ct {
  %a = ckks.mul %x, %y : (!ct, !ct) -> !ct
  %b = ckks.mul_scalar %x, 0.5 : !ct -> !ct
  %c = ckks.add_scalar %b, 0.25 : !ct
  %s = ckks.sub %x, %c : !ct
  %d = ckks.square %y : !ct -> !ct
  %t = ckks.add %d, %a : !ct
  %u = ckks.add %s, %t : !ct
  func.return %u : !ct
}

// A sum that others use is a term of its own, and an op that records how it runs stays.
// CHECK-LABEL: func.func @left_alone
// CHECK-NEXT:    %a = ckks.square %x
// CHECK-NEXT:    %s = ckks.add %a, %x
// CHECK-NEXT:    %t = ckks.add %s, %s
// CHECK-NEXT:    %u = ckks.add %x, %a {fhelium.implementation = "mine"}
// CHECK-NEXT:    func.return %s, %t, %u
func.func @left_alone(%x: !ct) -> (!ct, !ct, !ct) {
  %a = ckks.square %x : !ct -> !ct
  %s = ckks.add %a, %x : !ct
  %t = ckks.add %s, %s : !ct
  %u = ckks.add %x, %a {fhelium.implementation = "mine"} : !ct
  func.return %s, %t, %u : !ct, !ct, !ct
}

// With components assigned the order is settled.
!two = !ckks.ciphertext<components = 2>
// CHECK-LABEL: func.func @assigned
// CHECK:         ckks.add %x, %a
func.func @assigned(%x: !two) -> !two {
  %a = ckks.mul_scalar %x, 0.5 : !two -> !two
  %s = ckks.add %x, %a : !two
  func.return %s : !two
}
