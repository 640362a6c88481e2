// RUN: %opt %s --split-input-file --verify-diagnostics -p "rns-shard-limbs{ranks=2}"
// RUN: not %opt %s --split-input-file -p "rns-shard-limbs{ranks=0}" 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not %opt %s --split-input-file -p "rns-shard-limbs{ranks=4}" 2>&1 | filecheck %s --check-prefix=MANY

// NONE: found ranks=0, expected at least 1
// MANY: found ranks=4, expected at most 3: each rank owns the primes of whole levels, and there are 3

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^16, secret = ternary, security = none>
!x = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @collective(%x: !x) -> !x {
    %group = fhelium.resource @world : !dist.group
    // expected-error@+1 {{found dist.broadcast in a program whose limbs are to be spread, expected one of a single rank: ranks that share limbs work on one value. What makes numbers, tensors and keys the same on each rank of @world may stay: broadcast, all_reduce, all_gather and barrier}}
    %y = dist.broadcast %x from 0 in %group : !x
    func.return %y : !x
  }
}

// -----

!x = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
// expected-error@+1 {{found nothing for ckks.parameters on the module, expected #ckks.parameters<..>: keep the attribute when you lower}}
builtin.module {
  func.func @no_parameters(%x: !x) -> !x {
    func.return %x : !x
  }
}

// -----

// Seventeen squared: the attribute looks at sizes and remainders, the scheme at the primes.
#p = #ckks.parameters<ring_degree = 8, moduli = [[289], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!x = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
// expected-error@+1 {{pass rns-shard-limbs: ckks.parameters: 289 is not a prime}}
builtin.module attributes {ckks.parameters = #p} {
  func.func @refused_parameters(%x: !x) -> !x {
    func.return %x : !x
  }
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^16, secret = ternary, security = none>
!x = !rns.poly<basis = Q[0:4], components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found a value over Q[0:4], expected limbs of the parameters, Q[0:3] P[0:1]}}
  func.func @other_parameters(%x: !x) -> !x {
    func.return %x : !x
  }
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^16, secret = ternary, security = none>
!x = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @assigned(%x: !x) -> !x {
    // expected-error@+1 {{rns.negate records how or where it runs, expected ops without assignments: run rns-shard-limbs before fhelium-assign-implementations}}
    %y = rns.negate %x {fhelium.implementation = "torch-rns-negate"} : !x
    func.return %y : !x
  }
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^16, secret = ternary, security = none>
!x = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @call(%x: !x) -> !x {
    // expected-error@+1 {{found func.call, expected the ops of rns, scf.for and scf.if: lower with convert-ckks-to-rns first, and keep other ops out of the function}}
    %y = func.call @callee(%x) : (!x) -> !x
    func.return %y : !x
  }
  func.func private @callee(!x) -> !x
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^16, secret = ternary, security = none>
!x = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @main(%x: !x) -> !x {
    %y = rns.negate %x : !x
    // expected-error@+1 {{found fhelium.checkpoint, expected the ops of rns, scf.for and scf.if}}
    fhelium.checkpoint "half"
    func.return %y : !x
  }
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^16, secret = ternary, security = none>
!x = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found @blocks with 2 blocks, expected one: use scf.if and scf.for}}
  func.func @blocks(%x: !x) -> !x {
    cf.br ^bb1
  ^bb1:
    func.return %x : !x
  }
}

// -----

// Ranks that differ in a number would encode several plaintexts.
#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^16, secret = ternary, security = none>
!x = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @scatter(%x: !x, %t: tensor<2xi64>) -> (!x, tensor<1xi64>) {
    %group = fhelium.resource @world : !dist.group
    // expected-error@+1 {{found dist.scatter in a program whose limbs are to be spread}}
    %n = dist.scatter %t from 0 along 0 in %group : tensor<2xi64> -> tensor<1xi64>
    func.return %x, %n : !x, tensor<1xi64>
  }
}

// -----

// It may have other ranks.
#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^16, secret = ternary, security = none>
!x = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @other_group(%x: !x, %n: index) -> (!x, index) {
    %group = fhelium.resource @row : !dist.group
    // expected-error@+1 {{found dist.broadcast in a program whose limbs are to be spread, expected one of a single rank: ranks that share limbs work on one value. What makes numbers, tensors and keys the same on each rank of @world}}
    %m = dist.broadcast %n from 0 in %group : index
    func.return %x, %m : !x, index
  }
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^16, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 2, scale = 2^16, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found !ckks.ciphertext<level = 2, scale = 2^16, components = 2, form = evaluation> in @ciphertexts, expected residue polynomials, whose limbs ranks can share: lower with convert-ckks-to-rns first}}
  func.func @ciphertexts(%x: tensor<2x!ct>) -> tensor<2x!ct> {
    func.return %x : tensor<2x!ct>
  }
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^16, secret = ternary, security = none>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found !secure.tensor<4> in @secret, expected residue polynomials, whose limbs ranks can share: lower with convert-ckks-to-rns first}}
  func.func @secret(%x: !secure.tensor<4>) -> !secure.tensor<4> {
    func.return %x : !secure.tensor<4>
  }
}

// -----

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^16, secret = ternary, security = none>
!x = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!ct = !ckks.ciphertext<level = 2, scale = 2^16, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @half_lowered(%x: !x) -> !x {
    %c = builtin.unrealized_conversion_cast %x : !x to !ct
    // expected-error@+1 {{found ckks.negate, expected the ops of rns, scf.for and scf.if: lower with convert-ckks-to-rns first}}
    %d = ckks.negate %c : !ct
    %y = builtin.unrealized_conversion_cast %d : !ct to !x
    func.return %y : !x
  }
}
