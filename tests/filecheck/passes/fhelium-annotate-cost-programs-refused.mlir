// RUN: fhelium-opt %s --split-input-file --verify-diagnostics -p fhelium-annotate-cost

#parameters = #ckks.parameters<
  ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3, scale = 2^6,
  secret = ternary, security = none>
builtin.module attributes {ckks.parameters = #parameters} {
  func.func @main(%x: !ckks.ciphertext) -> !ckks.ciphertext {
    // expected-error @+1 {{found func.func with a value of type !ckks.ciphertext, expected an assigned level}}
    %y = ckks.negate %x : !ckks.ciphertext
    func.return %y : !ckks.ciphertext
  }
}

// -----

#parameters = #ckks.parameters<
  ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3, scale = 2^6,
  secret = ternary, security = none>
builtin.module attributes {ckks.parameters = #parameters} {
  // expected-error @+1 {{found @main calling itself, expected no recursion: how often it runs is not known}}
  func.func @main(%x: i32) -> i32 {
    %y = func.call @main(%x) : (i32) -> i32
    func.return %y : i32
  }
}

// -----

#parameters = #ckks.parameters<
  ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3, scale = 2^6,
  secret = ternary, security = none>
builtin.module attributes {ckks.parameters = #parameters} {
  func.func @main(%x: !ckks.ciphertext) -> !ckks.ciphertext {
    %group = fhelium.resource @world : !dist.group
    // expected-error @+1 {{found dist.broadcast with a value of type !ckks.ciphertext, expected an assigned level and number of components: assign them with ckks-assign-levels}}
    %y = dist.broadcast %x from 0 in %group : !ckks.ciphertext
    func.return %y : !ckks.ciphertext
  }
}
