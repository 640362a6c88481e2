// RUN: %opt %s --split-input-file --verify-diagnostics -p ckks-assign-scales

#p = #ckks.parameters<ring_degree = 8, moduli = [[257], [193], [113]], special = [241],
                      digits = 3, scale = 2^7, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 2>
builtin.module attributes {ckks.parameters = #p} {
  func.func @small(%x: !ct) -> !ct {
    // expected-error@+1 {{pass ckks-assign-scales: found a product by 0.001, which rounds to 0 at the scale 2^7, expected a factor of at least 7.8e-03: leave the term out, or choose parameters of a greater scale, as the option precision of secure-select-parameters and ckks-select-parameters does}}
    %a = ckks.mul_scalar %x, 0.001 : !ct -> !ct
    func.return %a : !ct
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[257], [193], [113]], special = [241],
                      digits = 3, scale = 2^7, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 2>
builtin.module attributes {ckks.parameters = #p} {
  func.func @large_factor(%x: !ct) -> !ct {
    // expected-error@+1 {{pass ckks-assign-scales: found the scalar 1e+307, which has 1027 bits at its scale, expected fewer than 1024: use a smaller scale}}
    %a = ckks.mul_scalar %x, 1.0e307 : !ct -> !ct
    func.return %a : !ct
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[257], [193], [113]], special = [241],
                      digits = 3, scale = 2^7, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 2>
builtin.module attributes {ckks.parameters = #p} {
  func.func @large_summand(%x: !ct) -> !ct {
    // expected-error@+1 {{pass ckks-assign-scales: found the scalar 1e+307, which has 1027 bits at its scale, expected fewer than 1024: use a smaller scale}}
    %a = ckks.add_scalar %x, 1.0e307 : !ct
    func.return %a : !ct
  }
}

// -----

// Zero is no rounding, and a small summand costs no more than the scale does.
#p = #ckks.parameters<ring_degree = 8, moduli = [[257], [193], [113]], special = [241],
                      digits = 3, scale = 2^7, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 2>
builtin.module attributes {ckks.parameters = #p} {
  func.func @fine(%x: !ct) -> !ct {
    %a = ckks.mul_scalar %x, 0.0 : !ct -> !ct
    %b = ckks.add_scalar %a, 0.0001 : !ct
    func.return %b : !ct
  }
}
