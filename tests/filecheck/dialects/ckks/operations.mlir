// RUN: %roundtrip
// RUN: %generic-roundtrip
// RUN: %opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^6, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 2, scale = 2^12, components = 3, form = evaluation>
!ct2 = !ckks.ciphertext<level = 2, scale = 2^12, components = 2, form = evaluation>
!low = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!rescaled = !ckks.ciphertext<level = 1, scale = 15.937743190661479, components = 2, form = evaluation>
!coeff = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = coefficient>
!pt = !ckks.plaintext<level = 2, scale = 2^6, form = evaluation>

builtin.module attributes {ckks.parameters = #p} {
  // CHECK-LABEL:   func.func @arithmetic
  // GENERIC:       "func.func"() <{sym_name = "arithmetic"
  func.func @arithmetic(%x: !ct, %y: !ct, %p: !pt, %q: !pt) {
    // CHECK-NEXT:    %add = ckks.add %x, %y : !ct_L2_s6
    // GENERIC:       %add = "ckks.add"(%x, %y) : (!ct_L2_s6, !ct_L2_s6) -> !ct_L2_s6
    %add = ckks.add %x, %y : !ct

    // CHECK-NEXT:    %sub = ckks.sub %x, %y : !ct_L2_s6
    // GENERIC-NEXT:  %sub = "ckks.sub"(%x, %y) : (!ct_L2_s6, !ct_L2_s6) -> !ct_L2_s6
    %sub = ckks.sub %x, %y : !ct

    // CHECK-NEXT:    %negate = ckks.negate %x : !ct_L2_s6
    // GENERIC-NEXT:  %negate = "ckks.negate"(%x) : (!ct_L2_s6) -> !ct_L2_s6
    %negate = ckks.negate %x : !ct

    // CHECK-NEXT:    %add_plain = ckks.add_plain %x, %p : !ct_L2_s6, !pt_L2_s6
    // GENERIC-NEXT:  %add_plain = "ckks.add_plain"(%x, %p) : (!ct_L2_s6, !pt_L2_s6) -> !ct_L2_s6
    %add_plain = ckks.add_plain %x, %p : !ct, !pt

    // CHECK-NEXT:    %sub_plain = ckks.sub_plain %x, %p : !ct_L2_s6, !pt_L2_s6
    // GENERIC-NEXT:  %sub_plain = "ckks.sub_plain"(%x, %p) : (!ct_L2_s6, !pt_L2_s6) -> !ct_L2_s6
    %sub_plain = ckks.sub_plain %x, %p : !ct, !pt

    // CHECK-NEXT:    %mul = ckks.mul %x, %y : (!ct_L2_s6, !ct_L2_s6) -> !ct3_L2_s12
    // GENERIC-NEXT:  %mul = "ckks.mul"(%x, %y) : (!ct_L2_s6, !ct_L2_s6) -> !ct3_L2_s12
    %mul = ckks.mul %x, %y : (!ct, !ct) -> !ct3

    // CHECK-NEXT:    %square = ckks.square %x : !ct_L2_s6 -> !ct3_L2_s12
    // GENERIC-NEXT:  %square = "ckks.square"(%x) : (!ct_L2_s6) -> !ct3_L2_s12
    %square = ckks.square %x : !ct -> !ct3

    // CHECK-NEXT:    %mul_plain = ckks.mul_plain %x, %p : (!ct_L2_s6, !pt_L2_s6) -> !ct_L2_s12
    // GENERIC-NEXT:  %mul_plain = "ckks.mul_plain"(%x, %p) : (!ct_L2_s6, !pt_L2_s6) -> !ct_L2_s12
    %mul_plain = ckks.mul_plain %x, %p : (!ct, !pt) -> !ct2

    // CHECK-NEXT:    %weighted_sum = ckks.weighted_sum %x, %y by %p, %q : (!ct_L2_s6, !ct_L2_s6, !pt_L2_s6, !pt_L2_s6) -> !ct_L2_s12
    // GENERIC-NEXT:  %weighted_sum = "ckks.weighted_sum"(%x, %y, %p, %q) : (!ct_L2_s6, !ct_L2_s6, !pt_L2_s6, !pt_L2_s6) -> !ct_L2_s12
    %weighted_sum = ckks.weighted_sum %x, %y by %p, %q : (!ct, !ct, !pt, !pt) -> !ct2

    // CHECK-NEXT:    %add_scalar = ckks.add_scalar %x, 5.000000e-01 : !ct_L2_s6
    // GENERIC-NEXT:  %add_scalar = "ckks.add_scalar"(%x) <{value = 5.000000e-01 : f64}> : (!ct_L2_s6) -> !ct_L2_s6
    %add_scalar = ckks.add_scalar %x, 0.5 : !ct

    // CHECK-NEXT:    %mul_scalar = ckks.mul_scalar %x, -0.12345678901234568 : !ct_L2_s6 -> !ct_L2_s12
    // GENERIC-NEXT:  %mul_scalar = "ckks.mul_scalar"(%x) <{value = -0.12345678901234568 : f64}> : (!ct_L2_s6) -> !ct_L2_s12
    %mul_scalar = ckks.mul_scalar %x, -0.12345678901234568 : !ct -> !ct2

    // CHECK-NEXT:    %mul_integer = ckks.mul_integer %x, -3 : !ct_L2_s6
    // GENERIC-NEXT:  %mul_integer = "ckks.mul_integer"(%x) <{value = -3 : i64}> : (!ct_L2_s6) -> !ct_L2_s6
    %mul_integer = ckks.mul_integer %x, -3 : !ct
    func.return
  }

  // CHECK-LABEL:   func.func @key_switching
  // GENERIC:       "func.func"() <{sym_name = "key_switching"
  func.func @key_switching(%x: !ct, %x3: !ct3) {
    %relinearization = fhelium.resource @relinearization : !ckks.key<relinearization>
    %left = fhelium.resource @left : !ckks.key<rotation, 5>
    %right = fhelium.resource @right : !ckks.key<rotation, -7>
    %conjugation = fhelium.resource @conjugation : !ckks.key<conjugation>

    // CHECK:         %a = ckks.relinearize %x3 with %relinearization : !ct3_L2_s12 -> !ct_L2_s12
    // GENERIC:       %a = "ckks.relinearize"(%x3, %relinearization) : (!ct3_L2_s12, !ckks.key<relinearization>) -> !ct_L2_s12
    %a = ckks.relinearize %x3 with %relinearization : !ct3 -> !ct2

    // CHECK-NEXT:    %b = ckks.rotate %x by 5 with %left : !ct_L2_s6, !ckks.key<rotation, 5>
    // GENERIC-NEXT:  %b = "ckks.rotate"(%x, %left) <{step = 5 : i64}> : (!ct_L2_s6, !ckks.key<rotation, 5>) -> !ct_L2_s6
    %b = ckks.rotate %x by 5 with %left : !ct, !ckks.key<rotation, 5>

    // CHECK-NEXT:    %c = ckks.rotate %x by -7 with %right : !ct_L2_s6, !ckks.key<rotation, -7>
    // GENERIC-NEXT:  %c = "ckks.rotate"(%x, %right) <{step = -7 : i64}>
    %c = ckks.rotate %x by -7 with %right : !ct, !ckks.key<rotation, -7>

    // CHECK-NEXT:    %d, %e = ckks.rotate_many %x by [5, -7] with %left, %right : (!ct_L2_s6, !ckks.key<rotation, 5>, !ckks.key<rotation, -7>) -> (!ct_L2_s6, !ct_L2_s6)
    // GENERIC-NEXT:  %d, %e = "ckks.rotate_many"(%x, %left, %right) <{steps = array<i64: 5, -7>}> : (!ct_L2_s6, !ckks.key<rotation, 5>, !ckks.key<rotation, -7>) -> (!ct_L2_s6, !ct_L2_s6)
    %d, %e = ckks.rotate_many %x by [5, -7] with %left, %right : (!ct, !ckks.key<rotation, 5>, !ckks.key<rotation, -7>) -> (!ct, !ct)

    // CHECK-NEXT:    %f = ckks.conjugate %x with %conjugation : !ct_L2_s6
    // GENERIC-NEXT:  %f = "ckks.conjugate"(%x, %conjugation) : (!ct_L2_s6, !ckks.key<conjugation>) -> !ct_L2_s6
    %f = ckks.conjugate %x with %conjugation : !ct
    func.return
  }

  // CHECK-LABEL:   func.func @levels
  // GENERIC:       "func.func"() <{sym_name = "levels"
  func.func @levels(%x2: !ct2, %x: !ct) {
    // CHECK-NEXT:    %a = ckks.rescale %x2 : !ct_L2_s12 -> !ct_L1_s4
    // GENERIC:       %a = "ckks.rescale"(%x2) : (!ct_L2_s12) -> !ct_L1_s4
    %a = ckks.rescale %x2 : !ct2 -> !rescaled

    // CHECK-NEXT:    %b = ckks.mod_switch %x : !ct_L2_s6 -> !ct_L1_s6
    // GENERIC-NEXT:  %b = "ckks.mod_switch"(%x) : (!ct_L2_s6) -> !ct_L1_s6
    %b = ckks.mod_switch %x : !ct -> !low

    // CHECK-NEXT:    %c = ckks.to_coefficient %x : !ct_L2_s6 -> !ct_L2_s6_coeff
    // GENERIC-NEXT:  %c = "ckks.to_coefficient"(%x) : (!ct_L2_s6) -> !ct_L2_s6_coeff
    %c = ckks.to_coefficient %x : !ct -> !coeff

    // CHECK-NEXT:    %d = ckks.to_evaluation %c : !ct_L2_s6_coeff -> !ct_L2_s6
    // GENERIC-NEXT:  %d = "ckks.to_evaluation"(%c) : (!ct_L2_s6_coeff) -> !ct_L2_s6
    %d = ckks.to_evaluation %c : !coeff -> !ct
    func.return
  }
}

// What is not assigned yet is not checked; an assignment of an implementation stands with the op.

// CHECK-LABEL:   func.func @unassigned
// GENERIC:       "func.func"() <{sym_name = "unassigned"
func.func @unassigned(%x: !ckks.ciphertext, %y: !ckks.ciphertext<scale = 2^6>, %p: !ckks.plaintext) {
  // CHECK-NEXT:    %a = ckks.mul %x, %y : (!ct, !ct_s6) -> !ct
  // GENERIC:       %a = "ckks.mul"(%x, %y) : (!ct, !ct_s6) -> !ct
  %a = ckks.mul %x, %y : (!ckks.ciphertext, !ckks.ciphertext<scale = 2^6>) -> !ckks.ciphertext

  // CHECK-NEXT:    %b = ckks.rescale %a : !ct -> !ct
  %b = ckks.rescale %a : !ckks.ciphertext -> !ckks.ciphertext

  // CHECK-NEXT:    %c = ckks.mul_scalar %b, 2.000000e+00 : !ct -> !ct_s6
  %c = ckks.mul_scalar %b, 2.0 : !ckks.ciphertext -> !ckks.ciphertext<scale = 2^6>

  // CHECK-NEXT:    %d = ckks.add_plain %c, %p {fhelium.implementation = "mine", fhelium.in_place, note} : !ct_s6, !pt
  // GENERIC:       %d = "ckks.add_plain"(%c, %p) {fhelium.implementation = "mine", fhelium.in_place, note} : (!ct_s6, !pt) -> !ct_s6
  %d = ckks.add_plain %c, %p {fhelium.implementation = "mine", fhelium.in_place, note} : !ckks.ciphertext<scale = 2^6>, !ckks.plaintext
  func.return
}
