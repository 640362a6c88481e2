// RUN: %opt %s -p convert-ckks-to-rns --split-input-file --verify-diagnostics

// What can't be lowered is refused at its place, before anything is changed.

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
// expected-error@+1 {{pass convert-ckks-to-rns: found nothing for ckks.parameters on the module, expected #ckks.parameters<..>: the primes of each level come from there: ckks-default chooses some, for secret tensors secure-default}}
builtin.module {
  func.func @no_parameters(%x: !ct) {
    %a = ckks.negate %x : !ct
    func.return
  }
}

// -----

// Types alone ask for parameters too.
// expected-error@+1 {{pass convert-ckks-to-rns: found nothing for ckks.parameters}}
builtin.module {
  func.func private @types(tensor<2x!ckks.plaintext>)
}

// -----

// expected-error@+1 {{pass convert-ckks-to-rns: found "none" for ckks.parameters on the module, expected #ckks.parameters<..>}}
builtin.module attributes {ckks.parameters = "none"} {
  func.func private @other(!ckks.ciphertext)
}

// -----

!ct = !ckks.ciphertext<level = 0, scale = 2^6, components = 2, form = evaluation>
// expected-error@+1 {{pass convert-ckks-to-rns: ckks.parameters: }}
builtin.module attributes {ckks.parameters = #ckks.parameters<
    ring_degree = 16, moduli = [[97]], special = [193], digits = 1, scale = 2^6, secret = ternary, security = 128>} {
  func.func private @insecure(!ct)
}

// -----

!ct = !ckks.ciphertext<level = 0, scale = 2^6, components = 2, form = evaluation>
// expected-error@+1 {{pass convert-ckks-to-rns: ckks.parameters: 161 is not a prime: `fhelium-params` finds some}}
builtin.module attributes {ckks.parameters = #ckks.parameters<
    ring_degree = 16, moduli = [[161]], special = [193], digits = 1, scale = 2^6, secret = ternary, security = none>} {
  func.func private @composite(!ct)
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193]], special = [353], digits = 2,
                      scale = 2^6, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!some = !ckks.ciphertext<level = 1, components = 2>
builtin.module attributes {ckks.parameters = #p} {
  func.func @unassigned_result(%x: !ct) {
    // expected-error@+1 {{found ckks.mod_switch with a value of type !ckks.ciphertext<level = 1, components = 2>, expected an assigned scale and form: run ckks-default before, or write it in the text}}
    %a = ckks.mod_switch %x : !ct -> !some
    func.return
  }
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193]], special = [353], digits = 2,
                      scale = 2^6, secret = ternary, security = none>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found func.func with a value of type !ckks.ciphertext, expected an assigned level and scale and components and form}}
  func.func @unassigned_argument(%x: !ckks.ciphertext) {
    %a = ckks.negate %x : !ckks.ciphertext
    func.return
  }
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193]], special = [353], digits = 2,
                      scale = 2^6, secret = ternary, security = none>
builtin.module attributes {ckks.parameters = #p} {
  func.func @unassigned_material() {
    // expected-error@+1 {{found fhelium.material with a value of type !ckks.plaintext<level = 1>, expected an assigned scale and form}}
    %a = fhelium.material @a : tensor<2x!ckks.plaintext<level = 1>>
    func.return
  }
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193]], special = [353], digits = 2,
                      scale = 2^6, secret = ternary, security = none>
!high = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found func.func with a value at level 2, expected at most 1, the top level of ckks.parameters}}
  func.func @level(%x: !high) {
    func.return
  }
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193]], special = [353], digits = 2,
                      scale = 2^6, secret = ternary, security = none>
!product = !ckks.ciphertext<level = 0, scale = 2^12, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found a value of scale 2^12 at level 0, whose modulus has 7 bits, expected less: rescale products before, or give it a higher level or a smaller scale}}
  func.func @scale(%x: !product) {
    func.return
  }
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193]], special = [353], digits = 2,
                      scale = 2^6, secret = ternary, security = none>
#q = #ckks.parameters<ring_degree = 16, moduli = [[97], [257]], special = [353], digits = 2,
                      scale = 2^6, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  builtin.module attributes {ckks.parameters = #p} {
    func.func private @same(!ct)
  }
  // expected-error@+1 {{found a module with ckks.parameters of its own, expected those of the outermost one: convert the two apart}}
  builtin.module attributes {ckks.parameters = #q} {
    func.func private @other(!ct)
  }
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193]], special = [353], digits = 2,
                      scale = 2^6, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @no_residue_form(%x: memref<4x!ct>) {
    // expected-error@-1 {{found func.func on a type that has no residue form, expected ciphertexts, plaintexts and tensors of them}}
    func.return
  }
}
