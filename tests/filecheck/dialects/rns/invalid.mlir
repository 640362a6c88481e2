// RUN: %opt %s --split-input-file --verify-diagnostics

// Each message of each verifier. Where the custom form makes a mismatch a parse error, the generic
// form shows what the verifier says.

!p = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!p1 = !rns.poly<basis = Q[0:3], components = 1, form = evaluation>
!p3 = !rns.poly<basis = Q[0:3], components = 3, form = evaluation>
!coeff = !rns.poly<basis = Q[0:3], components = 2, form = coefficient>
!coeff1 = !rns.poly<basis = Q[0:3], components = 1, form = coefficient>
!low = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
func.func @arithmetic(%x: !p, %x1: !p1, %x3: !p3, %c: !coeff, %c1: !coeff1, %low: !low, %i: i32) {
  // expected-error@+1 {{'rns.moduli': result 'result' at position 0 does not verify: i32 should be of base attribute rns.moduli}}
  %a0 = "rns.moduli"() : () -> i32

  // expected-error@+1 {{'rns.add': found rhs !rns.poly<basis = Q[0:2], components = 2, form = evaluation>, expected !rns.poly<basis = Q[0:3], components = 2, form = evaluation>: use one basis and form}}
  %a1 = rns.add %x, %low : (!p, !low) -> !p
  // expected-error@+1 {{'rns.sub': found rhs !rns.poly<basis = Q[0:3], components = 2, form = coefficient>, expected !rns.poly<basis = Q[0:3], components = 2, form = evaluation>: use one basis and form}}
  %a2 = rns.sub %x, %c : (!p, !coeff) -> !p
  // expected-error@+1 {{'rns.add': found result !rns.poly<basis = Q[0:3], components = 1, form = evaluation>, expected !rns.poly<basis = Q[0:3], components = 2, form = evaluation>: the longer operand decides}}
  %a3 = rns.add %x1, %x : (!p1, !p) -> !p1
  // expected-error@+1 {{'rns.add': operand 'lhs' at position 0 does not verify: i32 should be of base attribute rns.poly}}
  %a4 = "rns.add"(%i, %x) : (i32, !p) -> !p
  // expected-error@+1 {{'rns.negate': result 'result' at position 0 does not verify: attribute !rns.poly<basis = Q[0:3], components = 2, form = evaluation> expected from variable 'T', but got !rns.poly<basis = Q[0:3], components = 1, form = evaluation>}}
  %a5 = "rns.negate"(%x) : (!p) -> !p1

  // expected-error@+1 {{'rns.mul': found lhs form coefficient, expected evaluation: apply rns.ntt first}}
  %b1 = rns.mul %c, %c : (!coeff, !coeff) -> !coeff
  // expected-error@+1 {{'rns.mul': found rhs !rns.poly<basis = Q[0:3], components = 2, form = coefficient>, expected !rns.poly<basis = Q[0:3], components = 2, form = evaluation>: use one basis and form}}
  %b2 = rns.mul %x, %c1 : (!p, !coeff1) -> !p
  // expected-error@+1 {{'rns.mul': found result !rns.poly<basis = Q[0:3], components = 2, form = evaluation>, expected !rns.poly<basis = Q[0:3], components = 3, form = evaluation>: components a + b - 1}}
  %b3 = rns.mul %x, %x : (!p, !p) -> !p

  // expected-error@+1 {{'rns.square': found operand form coefficient, expected evaluation: apply rns.ntt first}}
  %c1_ = rns.square %c : !coeff -> !coeff
  // expected-error@+1 {{'rns.square': found result !rns.poly<basis = Q[0:3], components = 2, form = evaluation>, expected !rns.poly<basis = Q[0:3], components = 3, form = evaluation>: components 2a - 1}}
  %c2 = rns.square %x : !p -> !p

  // expected-error@+1 {{'rns.weighted_sum': found no terms, expected at least one}}
  %d1 = "rns.weighted_sum"() : () -> !p
  // expected-error@+1 {{'rns.weighted_sum': found term form coefficient, expected evaluation: apply rns.ntt first}}
  %d2 = rns.weighted_sum %c by %c1 : (!coeff, !coeff1) -> !coeff
  // expected-error@+1 {{'rns.weighted_sum': found a term !rns.poly<basis = Q[0:3], components = 3, form = evaluation>, expected !rns.poly<basis = Q[0:3], components = 2, form = evaluation>: all terms have one type}}
  %d3 = rns.weighted_sum %x, %x3 by %x1, %x1 : (!p, !p3, !p1, !p1) -> !p
  // expected-error@+1 {{'rns.weighted_sum': found a weight !rns.poly<basis = Q[0:3], components = 2, form = evaluation>, expected !rns.poly<basis = Q[0:3], components = 1, form = evaluation>: one component each}}
  %d4 = rns.weighted_sum %x, %x by %x1, %x : (!p, !p, !p1, !p) -> !p
  // expected-error@+1 {{'rns.weighted_sum': found result !rns.poly<basis = Q[0:3], components = 3, form = evaluation>, expected !rns.poly<basis = Q[0:3], components = 2, form = evaluation>: a sum has the type of its terms}}
  %d5 = rns.weighted_sum %x by %x1 : (!p, !p1) -> !p3
  // expected-error@+1 {{rns.weighted_sum}}
  %d6 = "rns.weighted_sum"(%x, %x, %x1) : (!p, !p, !p1) -> !p

  // expected-error@+1 {{Expected attribute i1024 but got i64}}
  %e1 = "rns.add_constant"(%x) <{constant = 3 : i64}> : (!p) -> !p
  // expected-error@+1 {{'rns.mul_constant': result 'result' at position 0 does not verify}}
  %e2 = "rns.mul_constant"(%x) <{constant = 3 : i1024}> : (!p) -> !p1

  // expected-error@+1 {{'rns.components': found components [2 to 2], expected a range within the operand's [0 to 3]}}
  %f1 = rns.components %x3[2 to 2] : !p3 -> !p1
  // expected-error@+1 {{'rns.components': found components [-1 to 2], expected a range within the operand's [0 to 3]}}
  %f2 = rns.components %x3[-1 to 2] : !p3 -> !p3
  // expected-error@+1 {{'rns.components': found components [2 to 4], expected a range within the operand's [0 to 3]}}
  %f3 = rns.components %x3[2 to 4] : !p3 -> !p
  // expected-error@+1 {{'rns.components': found result !rns.poly<basis = Q[0:3], components = 2, form = evaluation>, expected !rns.poly<basis = Q[0:3], components = 1, form = evaluation>: only components change}}
  %f4 = rns.components %x3[2 to 3] : !p3 -> !p
  func.return
}

// -----

!p = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!p1 = !rns.poly<basis = Q[0:3], components = 1, form = evaluation>
!coeff = !rns.poly<basis = Q[0:3], components = 2, form = coefficient>
!coeff1 = !rns.poly<basis = Q[0:3], components = 1, form = coefficient>
func.func @transforms(%x: !p, %c: !coeff) {
  // expected-error@+1 {{'rns.ntt': found operand form evaluation, expected coefficient: rns.ntt starts from it}}
  %a = rns.ntt %x : !p -> !p
  // expected-error@+1 {{'rns.ntt': found result !rns.poly<basis = Q[0:3], components = 1, form = evaluation>, expected !rns.poly<basis = Q[0:3], components = 2, form = evaluation>: only the form changes}}
  %b = rns.ntt %c : !coeff -> !p1
  // expected-error@+1 {{'rns.intt': found operand form coefficient, expected evaluation: rns.intt starts from it}}
  %d = rns.intt %c : !coeff -> !coeff
  // expected-error@+1 {{'rns.intt': found result !rns.poly<basis = Q[0:3], components = 1, form = coefficient>, expected !rns.poly<basis = Q[0:3], components = 2, form = coefficient>: only the form changes}}
  %e = rns.intt %x : !p -> !coeff1

  // expected-error@+1 {{'rns.automorphism': found the Galois element 4, expected an odd positive number}}
  %f = rns.automorphism %x, 4 : !p
  // expected-error@+1 {{'rns.automorphism': found the Galois element -1, expected an odd positive number}}
  %g = rns.automorphism %x, -1 : !p
  // expected-error@+1 {{'rns.automorphism': result 'result' at position 0 does not verify}}
  %h = "rns.automorphism"(%x) <{galois_element = 5 : i64}> : (!p) -> !p1
  func.return
}

// -----

!p = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!low = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!low1 = !rns.poly<basis = Q[0:2], components = 1, form = evaluation>
!low_coeff = !rns.poly<basis = Q[0:2], components = 2, form = coefficient>
!other = !rns.poly<basis = Q[0, 5] P[1], components = 2, form = evaluation>
!raised = !rns.poly<basis = Q[0:3] P[0], components = 2, form = evaluation>
!raised1 = !rns.poly<basis = Q[0:3] P[0], components = 1, form = evaluation>
!raised_coeff = !rns.poly<basis = Q[0:3] P[0], components = 1, form = coefficient>
!key = !ckks.key<relinearization>
func.func @bases(%x: !p, %low: !low, %low1: !low1, %low_coeff: !low_coeff, %other: !other, %raised: !raised, %raised1: !raised1, %raised_coeff: !raised_coeff, %key: !key, %group: !dist.group) {
  // expected-error@+1 {{'rns.project': found a result basis with P[1], Q[5], expected none beyond Q[0:3]: project onto limbs it has}}
  %a = rns.project %x : !p -> !other
  // expected-error@+1 {{'rns.project': found result !rns.poly<basis = Q[0:2], components = 2, form = coefficient>, expected !rns.poly<basis = Q[0:2], components = 2, form = evaluation>: only the basis changes}}
  %b = rns.project %x : !p -> !low_coeff

  // expected-error@+1 {{'rns.mod_up': found operand form evaluation, expected coefficient: apply rns.intt first}}
  %c = rns.mod_up %low : !low -> !p
  // expected-error@+1 {{'rns.mod_up': found result !rns.poly<basis = Q[0:2], components = 2, form = evaluation>, expected !rns.poly<basis = Q[0:2], components = 2, form = coefficient>: only the basis changes}}
  %d = rns.mod_up %low_coeff : !low_coeff -> !low

  // expected-error@+1 {{'rns.scale_up': found an operand basis with P[1], Q[5], expected none beyond Q[0:3]: keep every limb}}
  %e = rns.scale_up %other : !other -> !p
  // expected-error@+1 {{'rns.scale_up': found result !rns.poly<basis = Q[0:3], components = 2, form = evaluation>, expected !rns.poly<basis = Q[0:3], components = 1, form = evaluation>: only the basis changes}}
  %f = rns.scale_up %low1 : !low1 -> !p

  // expected-error@+1 {{'rns.mod_down': found a result basis with P[1], Q[5], expected none beyond Q[0:3]: divide by limbs it has}}
  %g = rns.mod_down %x, %other : !p, !other
  // expected-error@+1 {{'rns.mod_down': found a result with all limbs of the operand, expected fewer: nothing is divided}}
  %h = rns.mod_down %x, %x : !p, !p
  // expected-error@+1 {{'rns.mod_down': found result !rns.poly<basis = Q[0:2], components = 1, form = evaluation>, expected !rns.poly<basis = Q[0:2], components = 2, form = evaluation>: only the basis changes}}
  %i = rns.mod_down %x, %low1 : !p, !low1
  // expected-error@+1 {{'rns.mod_down': result 'result' at position 0 does not verify}}
  %j = "rns.mod_down"(%x, %low) : (!p, !low) -> !low1

  // expected-error@+1 {{'rns.key_product': found no digits, expected at least one}}
  %k = "rns.key_product"(%key) : (!key) -> !raised
  // expected-error@+1 {{'rns.key_product': found digit components 2, expected 1: decompose one component at a time}}
  %l = rns.key_product %raised with %key : (!raised, !key) -> !raised
  // expected-error@+1 {{'rns.key_product': found digit form coefficient, expected evaluation: apply rns.ntt first}}
  %m = rns.key_product %raised_coeff with %key : (!raised_coeff, !key) -> !raised
  // expected-error@+1 {{'rns.key_product': found a digit !rns.poly<basis = Q[0:3] P[0], components = 1, form = coefficient>, expected !rns.poly<basis = Q[0:3] P[0], components = 1, form = evaluation>: all digits have one type}}
  %n = rns.key_product %raised1, %raised_coeff with %key : (!raised1, !raised_coeff, !key) -> !raised
  // expected-error@+1 {{'rns.key_product': found result !rns.poly<basis = Q[0:3] P[0], components = 1, form = evaluation>, expected !rns.poly<basis = Q[0:3] P[0], components = 2, form = evaluation>: a key has two components}}
  %o = rns.key_product %raised1 with %key : (!raised1, !key) -> !raised1
  // expected-error@+1 {{'rns.key_product': operand 'key' at position 1 does not verify: !dist.group should be of attribute subclassing `SwitchingKeyType`}}
  %p = "rns.key_product"(%raised1, %group) : (!raised1, !dist.group) -> !raised
  func.return
}
