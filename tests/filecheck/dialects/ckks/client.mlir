// RUN: %roundtrip
// RUN: %generic-roundtrip
// RUN: %opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: %opt %s -p canonicalize,cse,dce | filecheck %s --check-prefix=EFFECTS
// RUN: %opt %s -p convert-ckks-to-rns | filecheck %s --check-prefix=LOWERED

#parameters = #ckks.parameters<
  ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2, scale = 2^5,
  secret = ternary, security = none>
!pt = !ckks.plaintext<level = 1, scale = 2^5, form = evaluation>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>

builtin.module attributes {ckks.parameters = #parameters} {
  // CHECK-LABEL: @round_trip
  func.func @round_trip(%values: tensor<3xf64>) -> tensor<3xf64> {
    // CHECK: %public = fhelium.resource @public : !ckks.client_key<public>
    %public = fhelium.resource @public : !ckks.client_key<public>
    // CHECK: %secret = fhelium.resource @secret : !ckks.client_key<secret>
    %secret = fhelium.resource @secret : !ckks.client_key<secret>
    // CHECK: %plain = ckks.encode %values : tensor<3xf64> -> !pt_L1_s5
    // GENERIC: %plain = "ckks.encode"(%values) : (tensor<3xf64>) -> !pt_L1_s5
    %plain = ckks.encode %values : tensor<3xf64> -> !pt
    // CHECK: %x = ckks.encrypt %plain with %public : !pt_L1_s5, !ckks.client_key<public> -> !ct_L1_s5
    // GENERIC: %x = "ckks.encrypt"(%plain, %public) : (!pt_L1_s5, !ckks.client_key<public>) -> !ct_L1_s5
    %x = ckks.encrypt %plain with %public : !pt, !ckks.client_key<public> -> !ct
    // CHECK: %clear = ckks.decrypt %x with %secret : !ct_L1_s5 -> !pt_L1_s5
    // GENERIC: %clear = "ckks.decrypt"(%x, %secret) : (!ct_L1_s5, !ckks.client_key<secret>) -> !pt_L1_s5
    %clear = ckks.decrypt %x with %secret : !ct -> !pt
    // CHECK: %result = ckks.decode %clear : !pt_L1_s5 -> tensor<3xf64>
    // GENERIC: %result = "ckks.decode"(%clear) : (!pt_L1_s5) -> tensor<3xf64>
    %result = ckks.decode %clear : !pt -> tensor<3xf64>
    func.return %result : tensor<3xf64>
  }

  // Equal encodings are one; encryptions are never merged, nor removed where nothing uses them.
  // EFFECTS-LABEL: @effects
  // EFFECTS-NEXT: fhelium.resource @secret
  // EFFECTS-NEXT: ckks.encode
  // EFFECTS-NEXT: ckks.encrypt
  // EFFECTS-NEXT: ckks.encrypt
  // EFFECTS-NEXT: ckks.encrypt
  // EFFECTS-NEXT: func.return
  func.func @effects(%values: tensor<3xf64>) -> (!ct, !ct) {
    %secret = fhelium.resource @secret : !ckks.client_key<secret>
    %p = ckks.encode %values : tensor<3xf64> -> !pt
    %q = ckks.encode %values : tensor<3xf64> -> !pt
    %x = ckks.encrypt %p with %secret : !pt, !ckks.client_key<secret> -> !ct
    %y = ckks.encrypt %q with %secret : !pt, !ckks.client_key<secret> -> !ct
    %unused = ckks.encrypt %q with %secret : !pt, !ckks.client_key<secret> -> !ct
    %clear = ckks.decrypt %x with %secret : !ct -> !pt
    func.return %x, %y : !ct, !ct
  }

  // They stay whole under lowering, between casts that cost nothing.
  // LOWERED-LABEL: @lowered
  // LOWERED: %x = ckks.encrypt
  // LOWERED-NEXT: %[[x:.*]] = builtin.unrealized_conversion_cast %x : !ct_L1_s5 to !poly2_Q0to2
  // LOWERED-NEXT: %[[sum:.*]] = rns.add %[[x]], %[[x]]
  // LOWERED-NEXT: %[[sum_ct:.*]] = builtin.unrealized_conversion_cast %[[sum]] : !poly2_Q0to2 to !ct_L1_s5
  // LOWERED-NEXT: ckks.decrypt %[[sum_ct]]
  func.func @lowered(%p: !pt) -> tensor<3xf64> {
    %secret = fhelium.resource @secret : !ckks.client_key<secret>
    %x = ckks.encrypt %p with %secret : !pt, !ckks.client_key<secret> -> !ct
    %sum = ckks.add %x, %x : !ct
    %clear = ckks.decrypt %sum with %secret : !ct -> !pt
    %result = ckks.decode %clear : !pt -> tensor<3xf64>
    func.return %result : tensor<3xf64>
  }
}
