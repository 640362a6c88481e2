// RUN: %opt %s -p convert-ckks-to-rns | filecheck %s
// RUN: %opt %s -p convert-ckks-to-rns --print-debuginfo | filecheck %s --check-prefix=PLACE

// An op that records an implementation stays whole, between casts; two in a row need none between.

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193]], special = [353], digits = 2,
                      scale = 2^6, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  // CHECK-LABEL: func.func @main
  // CHECK-NEXT:    %a = rns.negate %x : !poly2_Q0to2
  // CHECK-NEXT:    %[[a:.*]] = builtin.unrealized_conversion_cast %a : !poly2_Q0to2 to !ct_L1_s6
  // CHECK-NEXT:    %b = ckks.negate %[[a]] {fhelium.implementation = "mine"} : !ct_L1_s6
  // CHECK-NOT:     rns
  // CHECK:         %c = ckks.rotate %b by 1 with %key {fhelium.implementation = "mine"} : !ct_L1_s6, !ckks.key<rotation, 1>
  // CHECK-NEXT:    %[[c:.*]] = builtin.unrealized_conversion_cast %c : !ct_L1_s6 to !poly2_Q0to2
  // CHECK-NEXT:    %d = rns.negate %[[c]] : !poly2_Q0to2
  // CHECK-NEXT:    func.return %d : !poly2_Q0to2

  // PLACE:         builtin.unrealized_conversion_cast %a {{.*}} loc("{{.*}}":24:10)
  // PLACE:         builtin.unrealized_conversion_cast %c {{.*}} loc("{{.*}}":25:10)
  func.func @main(%x: !ct, %key: !ckks.key<rotation, 1>) -> !ct {
    %a = ckks.negate %x : !ct
    %b = ckks.negate %a {fhelium.implementation = "mine"} : !ct
    %c = ckks.rotate %b by 1 with %key {fhelium.implementation = "mine"} : !ct, !ckks.key<rotation, 1>
    %d = ckks.negate %c : !ct
    func.return %d : !ct
  }

  // So does an op of another dialect, and one that is to overwrite its operand.
  // CHECK-LABEL:   func.func @guest
  // CHECK-NEXT:    %[[x:.*]] = builtin.unrealized_conversion_cast %x : !poly2_Q0to2 to !ct_L1_s6
  // CHECK-NEXT:    %a = "test.op"(%[[x]]) : (!ct_L1_s6) -> !ct_L1_s6
  // CHECK-NEXT:    %b = ckks.negate %a {fhelium.in_place} : !ct_L1_s6
  // CHECK-NEXT:    %[[b:.*]] = builtin.unrealized_conversion_cast %b : !ct_L1_s6 to !poly2_Q0to2
  // CHECK-NEXT:    func.return %[[b]] : !poly2_Q0to2
  // PLACE:         func.func @guest(%x: {{.*}} loc("{{.*}}":38:
  func.func @guest(%x: !ct) -> !ct {
    %a = "test.op"(%x) : (!ct) -> !ct
    %b = ckks.negate %a {fhelium.in_place} : !ct
    func.return %b : !ct
  }
}
