// RUN: %opt %s --split-input-file --parsing-diagnostics --verify-diagnostics

// Each message of the verifier of a fused region.

!p = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!p1 = !rns.poly<basis = Q[0:3], components = 1, form = evaluation>
!coeff = !rns.poly<basis = Q[0:3], components = 2, form = coefficient>
!low = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
func.func @fused(%x: !p, %x1: !p1, %c: !coeff) {
  // expected-error@+1 {{'rns.fused': found arguments of types (!rns.poly<basis = Q[0:3], components = 1, form = evaluation>), expected (!rns.poly<basis = Q[0:3], components = 2, form = evaluation>), those of the op}}
  %a = "rns.fused"(%x) ({
  ^bb0(%0: !p1):
    %1 = rns.negate %0 : !p1
    rns.yield %1 : !p1
  }) : (!p) -> !p1

  // expected-error@+1 {{'rns.fused': found yielded values of types (!rns.poly<basis = Q[0:3], components = 2, form = evaluation>), expected (!rns.poly<basis = Q[0:3], components = 1, form = evaluation>), those of the op}}
  %b = rns.fused (%0 = %x) : (!p) -> !p1 {
    %1 = rns.negate %0 : !p
    rns.yield %1 : !p
  }

  // expected-error@+1 {{'rns.fused': found rns.negate at the end of the region, expected rns.yield of the results}}
  %d = rns.fused (%0 = %x) : (!p) -> !p {
    // expected-error@+1 {{found 'rns.negate' at the end of a block of 'rns.fused', expected a terminator: add one after it}}
    %1 = rns.negate %0 : !p
  }

  // expected-error@+1 {{'rns.fused': found no results, expected at least one}}
  rns.fused (%0 = %x) : (!p) -> () {
    rns.yield
  }

  // expected-error@+1 {{'rns.fused': found rns.intt in the region, expected pointwise ops alone: rns.add, rns.sub, rns.negate, rns.mul, rns.square, rns.weighted_sum, rns.add_constant, rns.mul_constant, rns.automorphism}}
  %e = rns.fused (%0 = %x) : (!p) -> !coeff {
    %1 = rns.intt %0 : !p -> !coeff
    rns.yield %1 : !coeff
  }

  // expected-error@+1 {{'rns.fused': found rns.add of a value from outside the region, expected arguments and values of the region alone: make it an operand of rns.fused}}
  %f = rns.fused (%0 = %x) : (!p) -> !p {
    %1 = rns.add %0, %x : (!p, !p) -> !p
    rns.yield %1 : !p
  }

  // expected-error@+1 {{'rns.fused': found rns.yield of a value from outside the region}}
  %g = rns.fused (%0 = %x) : (!p) -> !p {
    %1 = rns.negate %0 : !p
    rns.yield %x : !p
  }

  // expected-error@+1 {{'rns.fused': found rns.negate of type !rns.poly<basis = Q[0:3], components = 2, form = coefficient> beside a result of type !rns.poly<basis = Q[0:3], components = 2, form = evaluation>, expected one basis and form in the region}}
  %h = rns.fused (%0 = %x, %1 = %c) : (!p, !coeff) -> !p {
    %2 = rns.negate %1 : !coeff
    %3 = rns.negate %0 : !p
    rns.yield %3 : !p
  }

  // expected-error@+1 {{'rns.fused': found rns.automorphism of a value that the region computes, expected an argument of the region: it fetches words from other places, which are not there yet}}
  %i = rns.fused (%0 = %x) : (!p) -> !p {
    %1 = rns.negate %0 : !p
    %2 = rns.automorphism %1, 5 : !p
    rns.yield %2 : !p
  }

  // expected-error@+1 {{'rns.fused': found rns.add_constant in coefficient form, which is not pointwise, expected evaluation form: leave it outside the region}}
  %j = rns.fused (%0 = %c) : (!coeff) -> !coeff {
    %1 = rns.add_constant %0, 5 : !coeff
    rns.yield %1 : !coeff
  }

  // expected-error@+1 {{'rns.fused': found rns.negate that is to overwrite an argument of the region, expected it to leave the operands of rns.fused as they are: drop fhelium.in_place}}
  %k = rns.fused (%0 = %x) : (!p) -> !p {
    %1 = rns.negate %0 {fhelium.in_place} : !p
    rns.yield %1 : !p
  }

  func.return
}

// -----

!p = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
func.func @types(%x: !p) {
  // expected-error@+1 {{found 2 types of 1 operands}}
  %a = rns.fused (%0 = %x) : (!p, !p) -> !p {
    rns.yield %0 : !p
  }
}

// -----

!p = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
func.func @no_function(%x: !p) {
  // expected-error@+1 {{found the type !rns.poly<basis = Q[0:3], components = 2, form = evaluation>, expected (operands) -> results}}
  %a = rns.fused (%0 = %x) : !p {
    rns.yield %0 : !p
  }
}

// -----

func.func @elsewhere() {
  // expected-error@+1 {{'rns.yield' expects parent op 'rns.fused'}}
  rns.yield
}
