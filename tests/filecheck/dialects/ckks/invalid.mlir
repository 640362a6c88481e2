// RUN: %opt %s --split-input-file --verify-diagnostics

// Each message of each verifier. Where the custom form makes a mismatch a parse error, the generic
// form shows what the verifier says.

// Sums take values of one state.

!ct = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>
!low = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!pt = !ckks.plaintext<level = 2, scale = 2^6, form = evaluation>
func.func @sums(%x: !ct, %low: !low, %p: !pt) {
  // expected-error@+1 {{'ckks.add': operand 'rhs' at position 1 does not verify: expected the type of lhs: bring both to one level, scale, number of components and form, with ckks.mod_switch, ckks.rescale and the like.}}
  %add = "ckks.add"(%x, %low) : (!ct, !low) -> !ct
  // expected-error@+1 {{'ckks.sub': operand 'rhs' at position 1 does not verify: expected the type of lhs}}
  %sub = "ckks.sub"(%x, %low) : (!ct, !low) -> !ct
  // expected-error@+1 {{'ckks.add': result 'result' at position 0 does not verify: attribute !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation> expected from variable 'T', but got !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>}}
  %result = "ckks.add"(%x, %x) : (!ct, !ct) -> !low
  // expected-error@+1 {{'ckks.sub': operand 'lhs' at position 0 does not verify: !ckks.plaintext<level = 2, scale = 2^6, form = evaluation> should be of base attribute ckks.ciphertext}}
  %plain = "ckks.sub"(%p, %p) : (!pt, !pt) -> !pt
  // expected-error@+1 {{'ckks.negate': result 'result' at position 0 does not verify}}
  %negate = "ckks.negate"(%x) : (!ct) -> !low
  // expected-error@+1 {{'ckks.add': Expected 2 operands, but got 1}}
  %one = "ckks.add"(%x) : (!ct) -> !ct
  func.return
}

// -----

!ct = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>
!low = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
func.func @sum_in_custom_form(%x: !ct, %low: !low) {
  // expected-error@+1 {{level = 2}}
  %add = ckks.add %x, %low : !ct
  func.return
}

// -----

// Sums with plaintexts.

!ct = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>
!low = !ckks.plaintext<level = 1, scale = 2^6, form = evaluation>
!scale = !ckks.plaintext<level = 2, scale = 96.5, form = evaluation>
!coeff = !ckks.plaintext<level = 2, scale = 2^6, form = coefficient>
func.func @plain_sums(%x: !ct, %low: !low, %scale: !scale, %coeff: !coeff) {
  // expected-error@+1 {{'ckks.add_plain': found plaintext level 1, expected 2: encode the plaintext in the state of the ciphertext}}
  %a = ckks.add_plain %x, %low : !ct, !low
  // expected-error@+1 {{'ckks.sub_plain': found plaintext scale 96.5, expected 2^6: encode the plaintext in the state of the ciphertext}}
  %b = ckks.sub_plain %x, %scale : !ct, !scale
  // expected-error@+1 {{'ckks.add_plain': found plaintext form coefficient, expected evaluation: encode the plaintext in the state of the ciphertext}}
  %c = ckks.add_plain %x, %coeff : !ct, !coeff
  // expected-error@+1 {{'ckks.sub_plain': operand 'rhs' at position 1 does not verify: !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation> should be of base attribute ckks.plaintext}}
  %d = "ckks.sub_plain"(%x, %x) : (!ct, !ct) -> !ct
  func.return
}

// -----

// Products.

!ct = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>
!low = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!coeff = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = coefficient>
!ct3 = !ckks.ciphertext<level = 2, scale = 2^6, components = 3, form = evaluation>
!product = !ckks.ciphertext<level = 2, scale = 2^12, components = 3, form = evaluation>
!product2 = !ckks.ciphertext<level = 2, scale = 2^12, components = 2, form = evaluation>
!product_low = !ckks.ciphertext<level = 1, scale = 2^12, components = 3, form = evaluation>
!product_scale = !ckks.ciphertext<level = 2, scale = 2^11, components = 3, form = evaluation>
!product_coeff = !ckks.ciphertext<level = 2, scale = 2^12, components = 3, form = coefficient>
!huge = !ckks.ciphertext<level = 2, scale = 2^1000, components = 2, form = evaluation>
!pt = !ckks.plaintext<level = 2, scale = 2^6, form = evaluation>
!pt_low = !ckks.plaintext<level = 1, scale = 2^6, form = evaluation>
!pt_coeff = !ckks.plaintext<form = coefficient>
func.func @products(%x: !ct, %x3: !ct3, %low: !low, %coeff: !coeff, %huge: !huge, %p: !pt, %p_low: !pt_low, %p_coeff: !pt_coeff) {
  // expected-error@+1 {{'ckks.mul': found lhs in coefficient form, expected evaluation form: ckks.mul multiplies values at the roots, so convert with ckks.to_evaluation first}}
  %a = ckks.mul %coeff, %x : (!coeff, !ct) -> !product
  // expected-error@+1 {{found rhs in coefficient form, expected evaluation form}}
  %b = ckks.mul %x, %coeff : (!ct, !coeff) -> !product
  // expected-error@+1 {{found result in coefficient form, expected evaluation form}}
  %c = ckks.mul %x, %x : (!ct, !ct) -> !product_coeff
  // expected-error@+1 {{found rhs level 1, expected 2: bring both to one level with ckks.mod_switch}}
  %d = ckks.mul %x, %low : (!ct, !low) -> !product
  // expected-error@+1 {{found result level 1, expected 2: a product keeps the level}}
  %e = ckks.mul %x, %x : (!ct, !ct) -> !product_low
  // expected-error@+1 {{found result scale 2^11, expected 2^12: the scales multiply}}
  %f = ckks.mul %x, %x : (!ct, !ct) -> !product_scale
  // expected-error@+1 {{found result components 2, expected 3: a product of polynomials in the secret has one fewer than its factors together}}
  %g = ckks.mul %x, %x : (!ct, !ct) -> !product2
  // expected-error@+1 {{found scales 2^1000 and 2^1000, expected a product below 2^1024: rescale before you multiply}}
  %h = ckks.mul %huge, %huge : (!huge, !huge) -> !ckks.ciphertext

  // expected-error@+1 {{'ckks.mul_plain': found rhs level 1, expected 2}}
  %i = ckks.mul_plain %x, %p_low : (!ct, !pt_low) -> !product2
  // expected-error@+1 {{found result components 3, expected 2}}
  %j = ckks.mul_plain %x, %p : (!ct, !pt) -> !product
  // expected-error@+1 {{found rhs in coefficient form}}
  %k = ckks.mul_plain %x, %p_coeff : (!ct, !pt_coeff) -> !product2

  // expected-error@+1 {{'ckks.square': found input in coefficient form}}
  %l = ckks.square %coeff : !coeff -> !product
  // expected-error@+1 {{found result in coefficient form}}
  %m = ckks.square %x : !ct -> !product_coeff
  // expected-error@+1 {{found result level 1, expected 2: this op keeps it, so give the result the operand's}}
  %n = ckks.square %x : !ct -> !product_low
  // expected-error@+1 {{found result scale 2^11, expected 2^12: the scales multiply}}
  %o = ckks.square %x : !ct -> !product_scale
  // expected-error@+1 {{found result components 2, expected 3: a square has one for s^2 too}}
  %q = ckks.square %x : !ct -> !product2
  // expected-error@+1 {{found operand components 3, expected 2: relinearize before you square}}
  %r = ckks.square %x3 : !ct3 -> !product
  // expected-error@+1 {{found scales 2^1000 and 2^1000, expected a product below 2^1024}}
  %s = ckks.square %huge : !huge -> !ckks.ciphertext
  func.return
}

// -----

!ct = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>
!other = !ckks.ciphertext<level = 2, scale = 2^7, components = 2, form = evaluation>
!coeff = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = coefficient>
!product = !ckks.ciphertext<level = 2, scale = 2^12, components = 2, form = evaluation>
!product3 = !ckks.ciphertext<level = 2, scale = 2^12, components = 3, form = evaluation>
!pt = !ckks.plaintext<level = 2, scale = 2^6, form = evaluation>
!pt_low = !ckks.plaintext<level = 1, scale = 2^6, form = evaluation>
!pt_coeff = !ckks.plaintext<level = 2, scale = 2^6, form = coefficient>
func.func @weighted_sums(%x: !ct, %other: !other, %coeff: !coeff, %p: !pt, %p_low: !pt_low, %p_coeff: !pt_coeff) {
  // expected-error@+1 {{'ckks.weighted_sum': found no terms, expected at least one}}
  %a = "ckks.weighted_sum"() : () -> !product
  // expected-error@+1 {{found a term !ckks.ciphertext<level = 2, scale = 2^7, components = 2, form = evaluation>, expected !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>: every term has one type}}
  %b = ckks.weighted_sum %x, %other by %p, %p : (!ct, !other, !pt, !pt) -> !product
  // expected-error@+1 {{found a weight !ckks.plaintext<level = 1, scale = 2^6, form = evaluation>, expected !ckks.plaintext<level = 2, scale = 2^6, form = evaluation>: every weight has one type}}
  %c = ckks.weighted_sum %x, %x by %p, %p_low : (!ct, !ct, !pt, !pt_low) -> !product
  // expected-error@+1 {{found weight level 1, expected 2: encode at the level of the terms}}
  %d = ckks.weighted_sum %x by %p_low : (!ct, !pt_low) -> !product
  // expected-error@+1 {{found term in coefficient form, expected evaluation form: ckks.weighted_sum multiplies values at the roots}}
  %e = ckks.weighted_sum %coeff by %p : (!coeff, !pt) -> !product
  // expected-error@+1 {{found weight in coefficient form}}
  %f = ckks.weighted_sum %x by %p_coeff : (!ct, !pt_coeff) -> !product
  // expected-error@+1 {{found result components 3, expected 2: this op keeps it}}
  %g = ckks.weighted_sum %x by %p : (!ct, !pt) -> !product3
  // expected-error@+1 {{found result scale 2^6, expected 2^12: the scales multiply}}
  %h = ckks.weighted_sum %x by %p : (!ct, !pt) -> !ct
  // expected-error@+1 {{ckks.weighted_sum}}
  %i = "ckks.weighted_sum"(%x, %x, %p) : (!ct, !ct, !pt) -> !product
  func.return
}

// -----

// Scalars.

!ct = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>
!low = !ckks.ciphertext<level = 1, scale = 2^12, components = 2, form = evaluation>
!scaled = !ckks.ciphertext<level = 2, scale = 2^12, components = 2, form = evaluation>
!less = !ckks.ciphertext<level = 2, scale = 2^5, components = 2, form = evaluation>
!huge = !ckks.ciphertext<level = 2, scale = 2^1000, components = 2, form = evaluation>
func.func @scalars(%x: !ct, %huge: !huge, %unassigned: !ckks.ciphertext) {
  // expected-error@+1 {{'ckks.add_scalar': found the scalar inf, expected a finite number}}
  %a = "ckks.add_scalar"(%x) <{value = 0x7FF0000000000000 : f64}> : (!ct) -> !ct
  // expected-error@+1 {{'ckks.add_scalar': found the scalar nan, expected a finite number}}
  %b = "ckks.add_scalar"(%unassigned) <{value = 0x7FF8000000000000 : f64}> : (!ckks.ciphertext) -> !ckks.ciphertext
  // expected-error@+1 {{'ckks.add_scalar': found the scalar 16777216.0, which has 1025 bits at its scale, expected fewer than 1024: use a smaller scale}}
  %c = ckks.add_scalar %huge, 16777216.0 : !huge
  // expected-error@+1 {{Expected attribute f64 but got f32}}
  %d = "ckks.add_scalar"(%x) <{value = 1.0 : f32}> : (!ct) -> !ct

  // expected-error@+1 {{'ckks.mul_scalar': found the scalar -inf, expected a finite number}}
  %e = "ckks.mul_scalar"(%x) <{value = 0xFFF0000000000000 : f64}> : (!ct) -> !scaled
  // expected-error@+1 {{found result level 1, expected 2: this op keeps it, so give the result the operand's}}
  %f = ckks.mul_scalar %x, 0.5 : !ct -> !low
  // expected-error@+1 {{found result scale 2^5, expected at least the operand's 2^6: the number is encoded at the quotient of the two}}
  %g = ckks.mul_scalar %x, 2.0 : !ct -> !less
  // expected-error@+1 {{found the scalar 1e+300, which has 1991 bits at its scale, expected fewer than 1024: use a smaller scale}}
  %h = ckks.mul_scalar %x, 1.0e300 : !ct -> !huge
  // Unless it rounds to 0 because it is 0.
  // expected-error@+1 {{found the scalar 0.25, which rounds to 0 at the quotient of result and operand scale, expected a quotient that keeps it: use a greater result scale}}
  %i = ckks.mul_scalar %x, 0.25 : !ct -> !ct
  %j = ckks.mul_scalar %x, 0.0 : !ct -> !ct
  %k = ckks.mul_scalar %x, 2.0 : !ct -> !ct

  // expected-error@+1 {{Expected attribute i64 but got i32}}
  %l = "ckks.mul_integer"(%x) <{value = 2 : i32}> : (!ct) -> !ct
  // expected-error@+1 {{'ckks.mul_integer': result 'result' at position 0 does not verify}}
  %m = "ckks.mul_integer"(%x) <{value = 2 : i64}> : (!ct) -> !scaled
  func.return
}

// -----

!ct = !ckks.ciphertext
func.func @scalar_in_custom_form(%x: !ct) {
  // expected-error@+1 {{found '1', expected float literal}}
  %a = ckks.add_scalar %x, 1 : !ct
  func.return
}

// -----

// Key switching.

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^6, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>
!low = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!coeff = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = coefficient>
!ct3 = !ckks.ciphertext<level = 2, scale = 2^6, components = 3, form = evaluation>
!coeff3 = !ckks.ciphertext<level = 2, scale = 2^6, components = 3, form = coefficient>
!relin = !ckks.key<relinearization>
!left = !ckks.key<rotation, 1>
!far = !ckks.key<rotation, 4>
!near = !ckks.key<rotation, -4>
builtin.module attributes {ckks.parameters = #p} {
  func.func @key_switching(%x: !ct, %coeff: !coeff, %x3: !ct3, %coeff3: !coeff3, %relin: !relin, %left: !left, %far: !far, %near: !near, %conj: !ckks.key<conjugation>) {
    // expected-error@+1 {{'ckks.relinearize': found operand components 2, expected 3: only a product of two is relinearized}}
    %a = ckks.relinearize %x with %relin : !ct -> !ct
    // expected-error@+1 {{found result components 3, expected 2: that is what relinearizing is for}}
    %b = ckks.relinearize %x3 with %relin : !ct3 -> !ct3
    // expected-error@+1 {{found input in coefficient form, expected evaluation form: ckks.relinearize multiplies}}
    %c = ckks.relinearize %coeff3 with %relin : !coeff3 -> !ct
    // expected-error@+1 {{found result in coefficient form}}
    %d = ckks.relinearize %x3 with %relin : !ct3 -> !coeff
    // expected-error@+1 {{found result level 1, expected 2: this op keeps it}}
    %e = ckks.relinearize %x3 with %relin : !ct3 -> !low
    // expected-error@+1 {{Expected attribute !ckks.key<relinearization> but got !ckks.key<rotation, 1>}}
    %f = "ckks.relinearize"(%x3, %left) : (!ct3, !left) -> !ct

    // expected-error@+1 {{'ckks.rotate': found input in coefficient form}}
    %g = ckks.rotate %coeff by 1 with %left : !coeff, !left
    // expected-error@+1 {{found components 3, expected 2: relinearize before you rotate}}
    %h = ckks.rotate %x3 by 1 with %left : !ct3, !left
    // expected-error@+1 {{found the key !ckks.key<rotation, 1>, expected !ckks.key<rotation, 2>: each step has its own}}
    %i = ckks.rotate %x by 2 with %left : !ct, !left
    // expected-error@+1 {{found the key !ckks.key<relinearization>, expected !ckks.key<rotation, 1>: each step has its own}}
    %j = ckks.rotate %x by 1 with %relin : !ct, !relin
    // expected-error@+1 {{found step 4, expected between -3 and 3: a ciphertext has 4 slots}}
    %k = ckks.rotate %x by 4 with %far : !ct, !far
    // expected-error@+1 {{found step -4, expected between -3 and 3: a ciphertext has 4 slots}}
    %l = ckks.rotate %x by -4 with %near : !ct, !near

    // expected-error@+1 {{'ckks.rotate_many': found 2 steps, 1 keys and 1 results, expected the same number of each, and at least one}}
    %m = ckks.rotate_many %x by [1, 2] with %left : (!ct, !left) -> !ct
    // expected-error@+1 {{found 0 steps, 0 keys and 0 results}}
    "ckks.rotate_many"(%x) <{steps = array<i64>}> : (!ct) -> ()
    // expected-error@+1 {{found the key !ckks.key<rotation, 1>, expected !ckks.key<rotation, 2>: each step has its own}}
    %n, %o = ckks.rotate_many %x by [1, 2] with %left, %left : (!ct, !left, !left) -> (!ct, !ct)
    // expected-error@+1 {{found step 4, expected between -3 and 3}}
    %p, %q = ckks.rotate_many %x by [1, 4] with %left, %far : (!ct, !left, !far) -> (!ct, !ct)
    // expected-error@+1 {{found a result !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>, expected !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>: a rotation keeps the type}}
    %r = ckks.rotate_many %x by [1] with %left : (!ct, !left) -> !low
    // expected-error@+1 {{found input in coefficient form}}
    %s = ckks.rotate_many %coeff by [1] with %left : (!coeff, !left) -> !coeff
    // expected-error@+1 {{found components 3, expected 2: relinearize before you rotate}}
    %t = ckks.rotate_many %x3 by [1] with %left : (!ct3, !left) -> !ct3

    // expected-error@+1 {{'ckks.conjugate': found input in coefficient form}}
    %u = ckks.conjugate %coeff with %conj : !coeff
    // expected-error@+1 {{found components 3, expected 2: relinearize before you conjugate}}
    %v = ckks.conjugate %x3 with %conj : !ct3
    // expected-error@+1 {{Expected attribute !ckks.key<conjugation> but got !ckks.key<relinearization>}}
    %w = "ckks.conjugate"(%x, %relin) : (!ct, !relin) -> !ct
    func.return
  }
}

// -----

// Levels. Those that the parameters do not have are refused at every op, and scales too large for one.

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257, 353]], special = [449, 577], digits = 2,
                      scale = 2^6, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 2, scale = 2^14, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 1, scale = 2^14, components = 3, form = evaluation>
!ct_0 = !ckks.ciphertext<level = 0, scale = 2^6, components = 2, form = evaluation>
!ct_1 = !ckks.ciphertext<level = 1, scale = 2^14, components = 2, form = evaluation>
!ct_3 = !ckks.ciphertext<level = 3, scale = 2^14, components = 2>
!full = !ckks.ciphertext<level = 1, scale = 18721.0, components = 2, form = evaluation>
!pt_full = !ckks.plaintext<level = 0, scale = 2^7>
!pt_3 = !ckks.plaintext<level = 3>
!coeff = !ckks.ciphertext<level = 2, scale = 2^14, components = 2, form = coefficient>
builtin.module attributes {ckks.parameters = #p} {
  func.func @levels(%x: !ct, %x_0: !ct_0, %x_1: !ct_1, %x_3: !ct_3, %p_3: !pt_3, %any: !ckks.ciphertext, %coeff: !coeff, %full: !full, %pt_full: !pt_full) {
    // expected-error@+1 {{'ckks.rescale': found level 0, expected at least 1: no prime is left to drop, so choose parameters of a greater depth}}
    %a = ckks.rescale %x_0 : !ct_0 -> !ct_0
    // expected-error@+1 {{found result level 0, expected 1: a rescale drops one level}}
    %b = ckks.rescale %x : !ct -> !ct_0
    // expected-error@+1 {{found result level 2, expected 1: a rescale drops one level}}
    %c = ckks.rescale %x : !ct -> !ct
    // expected-error@+1 {{found result scale 2^14, expected 0.18059765655140486: a rescale at level 2 divides the scale by 90721}}
    %d = ckks.rescale %x : !ct -> !ct_1
    // expected-error@+1 {{found result components 3, expected 2: this op keeps it}}
    %e = ckks.rescale %x : !ct -> !ct3

    // expected-error@+1 {{'ckks.mod_switch': found result level 2, expected at most the operand's 1: dropped primes do not come back}}
    %f = ckks.mod_switch %x_1 : !ct_1 -> !ct
    // expected-error@+1 {{found result scale 2^6, expected 2^14: this op keeps it}}
    %g = ckks.mod_switch %x_1 : !ct_1 -> !ct_0
    // expected-error@+1 {{found result form coefficient, expected evaluation: this op keeps it}}
    %h = ckks.mod_switch %x : !ct -> !coeff

    // expected-error@+1 {{'ckks.to_evaluation': found result form coefficient, expected evaluation: that is what this op makes}}
    %i = ckks.to_evaluation %coeff : !coeff -> !coeff
    // expected-error@+1 {{'ckks.to_coefficient': found result form evaluation, expected coefficient: that is what this op makes}}
    %j = ckks.to_coefficient %x : !ct -> !ct
    // expected-error@+1 {{found result level 2, expected 1: this op keeps it}}
    %k = ckks.to_coefficient %x_1 : !ct_1 -> !coeff

    // expected-error@+1 {{'ckks.negate': found level 3, expected at most 2, the top level of ckks.parameters}}
    %l = ckks.negate %x_3 : !ct_3
    // expected-error@+1 {{'ckks.mul_plain': found level 3, expected at most 2}}
    %m = ckks.mul_plain %any, %p_3 : (!ckks.ciphertext, !pt_3) -> !ckks.ciphertext
    // expected-error@+1 {{'ckks.mod_switch': found level 3, expected at most 2}}
    %n = ckks.mod_switch %any : !ckks.ciphertext -> !ct_3
    // expected-error@+1 {{'ckks.rescale': found level 3, expected at most 2}}
    %o = ckks.rescale %x_3 : !ct_3 -> !ckks.ciphertext
    // expected-error@+1 {{'ckks.negate': found a value of scale 18721.0 at level 1, whose modulus has 15 bits, expected less: rescale products before, or give it a higher level or a smaller scale}}
    %p = ckks.negate %full : !full
    // expected-error@+1 {{'ckks.mul_plain': found a value of scale 2^7 at level 0, whose modulus has 7 bits, expected less}}
    %q = ckks.mul_plain %any, %pt_full : (!ckks.ciphertext, !pt_full) -> !ckks.ciphertext
    func.return
  }

  // The parameters are those of the innermost module that has some.
  builtin.module attributes {ckks.parameters = #ckks.parameters<
      ring_degree = 8, moduli = [[97]], special = [193], digits = 1, scale = 2^5, secret = ternary, security = none>} {
    builtin.module {
      func.func @inner(%x: !ct_0, %x_1: !ct_1) {
        %a = ckks.negate %x : !ct_0
        // expected-error@+1 {{'ckks.negate': found level 1, expected at most 0}}
        %b = ckks.negate %x_1 : !ct_1
        func.return
      }
    }
  }
}

// -----

// Scales are compared up to the rounding of their arithmetic, 2^-40.

!ct = !ckks.ciphertext<level = 2, scale = 2^20, components = 2, form = evaluation>
!near = !ckks.ciphertext<level = 2, scale = 1099511627776.5, components = 3, form = evaluation>
!far = !ckks.ciphertext<level = 2, scale = 1099511627778.0, components = 3, form = evaluation>
func.func @tolerance(%x: !ct) {
  %a = ckks.square %x : !ct -> !near
  // expected-error@+1 {{found result scale 1099511627778.0, expected 2^40: the scales multiply}}
  %b = ckks.square %x : !ct -> !far
  func.return
}
