// RUN: %opt %s -p canonicalize | filecheck %s

// Each identity, and beside it a neighbour that is none.

!ct = !ckks.ciphertext<level = 3, scale = 2^6, components = 2, form = evaluation>
!ct2 = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>
!ct1 = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!coeff = !ckks.ciphertext<level = 3, scale = 2^6, components = 2, form = coefficient>
!key0 = !ckks.key<rotation, 0>
!key1 = !ckks.key<rotation, 1>

// negate(negate(x)) -> x
// CHECK-LABEL: func.func @negate_twice
// CHECK-NEXT:  func.return %x
func.func @negate_twice(%x: !ct) -> !ct {
  %a = ckks.negate %x : !ct
  %b = ckks.negate %a : !ct
  func.return %b : !ct
}

// CHECK-LABEL: func.func @negate_thrice
// CHECK-NEXT:  %c = ckks.negate %x
// CHECK-NEXT:  func.return %c
func.func @negate_thrice(%x: !ct) -> !ct {
  %a = ckks.negate %x : !ct
  %b = ckks.negate %a : !ct
  %c = ckks.negate %b : !ct
  func.return %c : !ct
}

// CHECK-LABEL: func.func @negate_once
// CHECK-NEXT:  ckks.negate
func.func @negate_once(%x: !ct) -> !ct {
  %a = ckks.negate %x : !ct
  func.return %a : !ct
}

// add(x, negate(y)) -> sub(x, y)
// CHECK-LABEL: func.func @add_of_negate
// CHECK-NEXT:  %b = ckks.sub %x, %y
// CHECK-NEXT:  %c = ckks.sub %x, %y
// CHECK-NEXT:  func.return %b, %c
func.func @add_of_negate(%x: !ct, %y: !ct) -> (!ct, !ct) {
  %a = ckks.negate %y : !ct
  %b = ckks.add %x, %a : !ct
  %c = ckks.add %a, %x : !ct
  func.return %b, %c : !ct, !ct
}

// An op that records how it runs stays that op.
// CHECK-LABEL: func.func @assigned_add_of_negate
// CHECK-NEXT:  %a = ckks.negate %y
// CHECK-NEXT:  %b = ckks.add %x, %a {fhelium.implementation = "mine"}
// CHECK-NEXT:  %c = ckks.add %a, %x {fhelium.in_place}
// CHECK-NEXT:  %d = ckks.sub %x, %a {fhelium.implementation = "mine"}
func.func @assigned_add_of_negate(%x: !ct, %y: !ct) -> (!ct, !ct, !ct) {
  %a = ckks.negate %y : !ct
  %b = ckks.add %x, %a {fhelium.implementation = "mine"} : !ct
  %c = ckks.add %a, %x {fhelium.in_place} : !ct
  %d = ckks.sub %x, %a {fhelium.implementation = "mine"} : !ct
  func.return %b, %c, %d : !ct, !ct, !ct
}

// sub(x, negate(y)) -> add(x, y), and sub(negate(x), y) is nothing simpler
// CHECK-LABEL: func.func @sub_of_negate
// CHECK-NEXT:  %a = ckks.negate %y
// CHECK-NEXT:  %b = ckks.add %x, %y
// CHECK-NEXT:  %c = ckks.sub %a, %x
func.func @sub_of_negate(%x: !ct, %y: !ct) -> (!ct, !ct) {
  %a = ckks.negate %y : !ct
  %b = ckks.sub %x, %a : !ct
  %c = ckks.sub %a, %x : !ct
  func.return %b, %c : !ct, !ct
}

// add_scalar(x, 0) -> x
// CHECK-LABEL: func.func @add_zero
// CHECK-NEXT:  %c = ckks.add_scalar %x, 1.000000e-300
// CHECK-NEXT:  func.return %x, %x, %c
func.func @add_zero(%x: !ct) -> (!ct, !ct, !ct) {
  %a = ckks.add_scalar %x, 0.0 : !ct
  %b = ckks.add_scalar %x, -0.0 : !ct
  %c = ckks.add_scalar %x, 1.0e-300 : !ct
  func.return %a, %b, %c : !ct, !ct, !ct
}

// rotate(x, 0) -> x
// CHECK-LABEL: func.func @rotate_by_zero
// CHECK-NEXT:  %b = ckks.rotate %x by 1
// CHECK-NEXT:  func.return %x, %b
func.func @rotate_by_zero(%x: !ct, %key0: !key0, %key1: !key1) -> (!ct, !ct) {
  %a = ckks.rotate %x by 0 with %key0 : !ct, !key0
  %b = ckks.rotate %x by 1 with %key1 : !ct, !key1
  func.return %a, %b : !ct, !ct
}

// mod_switch(x) -> x when the level does not change
// CHECK-LABEL: func.func @mod_switch_to_same_level
// CHECK-NEXT:  %b = ckks.mod_switch %x
// CHECK-NEXT:  %c = ckks.mod_switch %y
// CHECK-NEXT:  func.return %x, %b, %c
func.func @mod_switch_to_same_level(%x: !ct, %y: !ckks.ciphertext) -> (!ct, !ct2, !ckks.ciphertext) {
  %a = ckks.mod_switch %x : !ct -> !ct
  %b = ckks.mod_switch %x : !ct -> !ct2
  // Levels that are not assigned may turn out different.
  %c = ckks.mod_switch %y : !ckks.ciphertext -> !ckks.ciphertext
  func.return %a, %b, %c : !ct, !ct2, !ckks.ciphertext
}

// mod_switch(mod_switch(x)) -> mod_switch(x)
// CHECK-LABEL: func.func @mod_switch_twice
// CHECK-NEXT:  %b = ckks.mod_switch %x : !ct_L3_s6 -> !ct_L1_s6
// CHECK-NEXT:  func.return %b
func.func @mod_switch_twice(%x: !ct) -> !ct1 {
  %a = ckks.mod_switch %x : !ct -> !ct2
  %b = ckks.mod_switch %a : !ct2 -> !ct1
  func.return %b : !ct1
}

// Through a value that is not assigned, both steps are valid and their composition is not.
// CHECK-LABEL: func.func @mod_switch_unassigned
// CHECK-NEXT:  %a = ckks.mod_switch %x : !ct_L1_s6 -> !ct
// CHECK-NEXT:  %b = ckks.mod_switch %a : !ct -> !ct_L2_s6
func.func @mod_switch_unassigned(%x: !ct1) -> !ct2 {
  %a = ckks.mod_switch %x : !ct1 -> !ckks.ciphertext
  %b = ckks.mod_switch %a : !ckks.ciphertext -> !ct2
  func.return %b : !ct2
}

// CHECK-LABEL: func.func @assigned_mod_switch
// CHECK-NEXT:  %a = ckks.mod_switch %x
// CHECK-NEXT:  %b = ckks.mod_switch %a {fhelium.implementation = "mine"}
func.func @assigned_mod_switch(%x: !ct) -> !ct1 {
  %a = ckks.mod_switch %x : !ct -> !ct2
  %b = ckks.mod_switch %a {fhelium.implementation = "mine"} : !ct2 -> !ct1
  func.return %b : !ct1
}

// to_evaluation(to_coefficient(x)) -> x, and the other way round
// CHECK-LABEL: func.func @form_round_trip
// CHECK-NEXT:  func.return %x, %y
func.func @form_round_trip(%x: !ct, %y: !coeff) -> (!ct, !coeff) {
  %a = ckks.to_coefficient %x : !ct -> !coeff
  %b = ckks.to_evaluation %a : !coeff -> !ct
  %c = ckks.to_evaluation %y : !coeff -> !ct
  %d = ckks.to_coefficient %c : !ct -> !coeff
  func.return %b, %d : !ct, !coeff
}

// CHECK-LABEL: func.func @form_round_trip_that_assigns
// CHECK-NEXT:  ckks.to_coefficient
// CHECK-NEXT:  ckks.to_evaluation
func.func @form_round_trip_that_assigns(%x: !ckks.ciphertext) -> !ct {
  %a = ckks.to_coefficient %x : !ckks.ciphertext -> !coeff
  %b = ckks.to_evaluation %a : !coeff -> !ct
  func.return %b : !ct
}

// CHECK-LABEL: func.func @one_form
// CHECK-NEXT:  ckks.to_coefficient
func.func @one_form(%x: !ct) -> !coeff {
  %a = ckks.to_coefficient %x : !ct -> !coeff
  func.return %a : !coeff
}

// Only the op itself, not what merely stands before it.
// CHECK-LABEL: func.func @other_neighbours
// CHECK-NEXT:  %a = ckks.negate %x
// CHECK-NEXT:  %b = ckks.mod_switch %a
// CHECK-NEXT:  %c = ckks.negate %y
// CHECK-NEXT:  %d = ckks.to_evaluation %c
// CHECK-NEXT:  func.return %b, %d
func.func @other_neighbours(%x: !ct, %y: !coeff) -> (!ct2, !ct) {
  %a = ckks.negate %x : !ct
  %b = ckks.mod_switch %a : !ct -> !ct2
  %c = ckks.negate %y : !coeff
  %d = ckks.to_evaluation %c : !coeff -> !ct
  func.return %b, %d : !ct2, !ct
}
