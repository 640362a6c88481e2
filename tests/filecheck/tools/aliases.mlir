// RUN: %roundtrip
// RUN: %generic-roundtrip --check-prefix=GENERIC
// RUN: %opt %s --no-aliases | filecheck %s --check-prefix=FULL
// RUN: %opt %s -t mlir | filecheck %s --check-prefix=FULL
// RUN: %opt %s -t fhelium-mlir{aliases=false} | filecheck %s --check-prefix=FULL

// Long types and attributes print as aliases, also inside other types; two with one name are told
// apart; the text parses back.

// CHECK:      #ckks_N8_L1 = #ckks.parameters<ring_degree = 8, moduli = {{\[\[97\], \[113\]\]}}, special = [193]
// CHECK-NEXT: !ct_L1_s5 = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
// CHECK-NEXT: !ct_L1_s5_1 = !ckks.ciphertext<level = 1, scale = 33.0, components = 2, form = evaluation>
// CHECK-EMPTY:
// CHECK-NEXT: builtin.module attributes {ckks.parameters = #ckks_N8_L1} {
// CHECK-NEXT:   func.func @nested(%x: tensor<4x?x!ct_L1_s5>, %y: (!ct_L1_s5_1) -> !ct_L1_s5) -> !ct_L1_s5_1 {
// CHECK-NEXT:     %z = "test.op"(%x) {list = [!ct_L1_s5], f = (!ct_L1_s5) -> ()} : (tensor<4x?x!ct_L1_s5>) -> !ct_L1_s5_1
// CHECK-NEXT:     func.return %z : !ct_L1_s5_1

// GENERIC:     !ct_L1_s5 = !ckks.ciphertext

// FULL-NOT:   !ct_L1
// FULL:       builtin.module attributes {ckks.parameters = #ckks.parameters<
// FULL:       tensor<4x?x!ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>>
// FULL-NOT:   !ct_L1

!a = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
!b = !ckks.ciphertext<level = 1, scale = 33.0, components = 2, form = evaluation>
#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>

builtin.module attributes {ckks.parameters = #p} {
  func.func @nested(%x: tensor<4x?x!a>, %y: (!b) -> !a) -> !b {
    %z = "test.op"(%x) {list = [!a], f = (!a) -> ()} : (tensor<4x?x!a>) -> !b
    func.return %z : !b
  }
}
