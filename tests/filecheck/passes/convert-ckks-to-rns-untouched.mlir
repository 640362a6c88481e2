// RUN: %opt %s -p convert-ckks-to-rns --split-input-file | filecheck %s

// A program without ckks content stays as it is, and needs no parameters.

// CHECK:      !poly2_Q0to2 = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
// CHECK-EMPTY:
// CHECK-NEXT: builtin.module {
// CHECK-NEXT:   func.func @main(%x: !poly2_Q0to2, %i: i32, %group: !dist.group, %key: !ckks.key<relinearization>) -> !poly2_Q0to2 {
// CHECK-NEXT:     %a = rns.negate %x {fhelium.implementation = "mine"} : !poly2_Q0to2
// CHECK-NEXT:     %b = fhelium.material @b : tensor<2xf64>
// CHECK-NEXT:     %c = "test.op"(%i) {note} : (i32) -> i32
// CHECK-NEXT:     func.return %a : !poly2_Q0to2
!p = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
func.func @main(%x: !p, %i: i32, %group: !dist.group, %key: !ckks.key<relinearization>) -> !p {
  %a = rns.negate %x {fhelium.implementation = "mine"} : !p
  %b = fhelium.material @b : tensor<2xf64>
  %c = "test.op"(%i) {note} : (i32) -> i32
  func.return %a : !p
}

// -----

// Its own casts, of whatever shape, are no business of the pass.
// CHECK-LABEL: func.func @casts
// CHECK-NEXT:    %a, %b = builtin.unrealized_conversion_cast %x, %i : !poly2_Q0to2, i32 to i32, i64
// CHECK-NEXT:    %y = rns.negate %x
builtin.module attributes {ckks.parameters = #ckks.parameters<
    ring_degree = 16, moduli = [[97], [193]], special = [353], digits = 2, scale = 2^6, secret = ternary, security = none>} {
  func.func @casts(%x: !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>, %i: i32) {
    %a, %b = builtin.unrealized_conversion_cast %x, %i : !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>, i32 to i32, i64
    %y = ckks.negate %x : !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
    func.return
  }
}
