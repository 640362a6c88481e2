// RUN: %opt %s --split-input-file --verify-diagnostics -p ckks-assign-scales

!ct = !ckks.ciphertext<level = 0>
// expected-error@below {{found nothing for ckks.parameters on the module, expected #ckks.parameters<..>: scales depend on the primes, and ckks-select-parameters chooses some}}
builtin.module {
  func.func @no_parameters(%x: !ct) -> !ct {
    func.return %x : !ct
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[257], [193], [113]], special = [241],
                      digits = 3, scale = 2^7, secret = ternary, security = none>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found a ciphertext without a level, expected one on each: ckks-assign-levels finds them}}
  func.func @no_level(%x: !ckks.ciphertext) -> !ckks.ciphertext {
    func.return %x : !ckks.ciphertext
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[257], [193], [113]], special = [241],
                      digits = 3, scale = 2^7, secret = ternary, security = none>
!ct2 = !ckks.ciphertext<level = 2>
!ct1 = !ckks.ciphertext<level = 1>
builtin.module attributes {ckks.parameters = #p} {
  func.func @switched(%x: !ct2) -> !ct1 {
    %a = ckks.mul_scalar %x, 0.5 : !ct2 -> !ct2
    %b = ckks.rescale %a : !ct2 -> !ct1
    %c = ckks.mod_switch %x : !ct2 -> !ct1
    // expected-error@+1 {{found ckks.add on values of scales 2^7 and 144.99115044247787, expected one: rescale both or neither, and let ckks-insert-mod-switch bring them to one level}}
    %d = ckks.add %b, %c : !ct1
    func.return %d : !ct1
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[257], [193], [113]], special = [241],
                      digits = 3, scale = 2^7, secret = ternary, security = none>
!ct1 = !ckks.ciphertext<level = 1>
!half = !ckks.ciphertext<level = 1, scale = 2^6>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found a ciphertext of scale 2^6 at level 1, expected 2^7, so that it can be added to others: leave the scale out for the pass to find}}
  func.func @other_scale(%x: !ct1, %y: !half) {
    func.return
  }
}

// -----

// Primes so far from the scale that lower levels leave it.
#p = #ckks.parameters<ring_degree = 8, moduli = [[257], [241], [193]], special = [337],
                      digits = 3, scale = 2^7, secret = ternary, security = none>
!ct2 = !ckks.ciphertext<level = 2>
!ct1 = !ckks.ciphertext<level = 1>
!ct0 = !ckks.ciphertext<level = 0>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{the scale of level 0 would be 2^4.9, expected about 2^7.0: what the primes are off the scale doubles with every level, so start the inputs at a lower level, or choose primes nearer to the scale}}
  func.func @drift(%x: !ct2, %y: !ct0) {
    func.return
  }
}

// -----

// A product without its rescale: the modulus of level 0 has no room for it.
#p = #ckks.parameters<ring_degree = 8, moduli = [[257], [193], [113]], special = [241],
                      digits = 3, scale = 2^7, secret = ternary, security = none>
!ct0 = !ckks.ciphertext<level = 0>
builtin.module attributes {ckks.parameters = #p} {
  func.func @no_rescale(%x: !ct0) -> !ct0 {
    // expected-error@+1 {{found a value of scale 2^14 at level 0, whose modulus has 9 bits, expected less: run ckks-insert-rescale before ckks-assign-levels, and dce for ops that nothing uses}}
    %a = ckks.mul %x, %x : (!ct0, !ct0) -> !ct0
    func.return %a : !ct0
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[257], [193], [113]], special = [241],
                      digits = 3, scale = 2^7, secret = ternary, security = none>
!ct0 = !ckks.ciphertext<level = 0>
builtin.module attributes {ckks.parameters = #p} {
  func.func @no_rescale_of_a_number(%x: !ct0) -> !ct0 {
    // expected-error@+1 {{found a value of scale 2^14 at level 0, whose modulus has 9 bits, expected less: run ckks-insert-rescale before ckks-assign-levels, and dce for ops that nothing uses}}
    %a = ckks.mul_scalar %x, 0.5 : !ct0 -> !ct0
    func.return %a : !ct0
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[257], [193], [113]], special = [241],
                      digits = 3, scale = 2^7, secret = ternary, security = none>
!ct1 = !ckks.ciphertext<level = 1>
builtin.module attributes {ckks.parameters = #p} {
  func.func @two_products(%x: !ct1) -> !ct1 {
    %a = ckks.mul %x, %x : (!ct1, !ct1) -> !ct1
    // expected-error@+1 {{found a value of scale 1390857.2849740933 at level 1, whose modulus has 16 bits, expected less: run ckks-insert-rescale before ckks-assign-levels, and dce for ops that nothing uses}}
    %b = ckks.mul_scalar %a, 0.5 : !ct1 -> !ct1
    func.return %b : !ct1
  }
}

// -----

// There is room, but a rescale could not bring it to the scale of a level.
#p = #ckks.parameters<ring_degree = 8, moduli = [[257, 193, 113]], special = [241],
                      digits = 3, scale = 2^7, secret = ternary, security = none>
!ct0 = !ckks.ciphertext<level = 0>
builtin.module attributes {ckks.parameters = #p} {
  func.func @three_factors(%x: !ct0) -> !ct0 {
    %a = ckks.mul %x, %x : (!ct0, !ct0) -> !ct0
    // expected-error@+1 {{found a product of 3 factors at level 0 that no rescale divides, expected at most 2: run ckks-insert-rescale before ckks-assign-levels, and dce for ops that nothing uses}}
    %b = ckks.mul_scalar %a, 0.5 : !ct0 -> !ct0
    func.return %b : !ct0
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[113], [257]], special = [241],
                      digits = 2, scale = 2^7, secret = ternary, security = none>
!ct0 = !ckks.ciphertext<level = 0>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found a value of scale 2^7 at level 0, whose modulus has 7 bits, expected less: choose primes above the scale}}
  func.func @scale_above_the_primes(%x: !ct0) {
    func.return
  }
}
