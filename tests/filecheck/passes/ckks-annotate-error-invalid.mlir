// RUN: %opt %s --split-input-file --verify-diagnostics -p ckks-annotate-error
// RUN: not %opt %s --split-input-file -p 'ckks-annotate-error{largest=-1}' 2>&1 | filecheck %s --check-prefix=LARGEST
// RUN: not %opt %s --split-input-file -p 'ckks-annotate-error{ranks=0}' 2>&1 | filecheck %s --check-prefix=RANKS

// LARGEST: error: pass 'ckks-annotate-error': found largest=-1, expected at least 0
// RANKS: error: pass 'ckks-annotate-error': found ranks=0, expected at least 1

!ct = !ckks.ciphertext<level = 0, scale = 2^5, components = 2, form = evaluation>
// expected-error@below {{found nothing for ckks.parameters on the module, expected #ckks.parameters<..>: how large errors are depends on them: ckks-default chooses some, for secret tensors secure-default}}
builtin.module {
  func.func @no_parameters(%x: !ct) {
    func.return
  }
}

// -----

// Seventeen squared: the attribute looks at sizes and remainders, the scheme at the primes.
#p = #ckks.parameters<ring_degree = 8, moduli = [[289], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 0, scale = 2^5, components = 2, form = evaluation>
// expected-error@below {{pass ckks-annotate-error: ckks.parameters: 289 is not a prime}}
builtin.module attributes {ckks.parameters = #p} {
  func.func @refused_parameters(%x: !ct) {
    func.return
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found func.func with a value of type !ckks.ciphertext<level = 1, components = 2, form = evaluation>, expected an assigned scale: run ckks-default before, or write it in the text}}
  func.func @unassigned(%x: !ct) {
    %0 = ckks.negate %x : !ct
    func.return
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found func.func with a value at level 2, expected at most 1, the top level of ckks.parameters}}
  func.func @too_high(%x: !ckks.ciphertext<level = 2, scale = 2^5, components = 2, form = evaluation>) {
    func.return
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @open_loop(%x: !ct, %n: index) -> !ct {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    // expected-error@+1 {{found a loop whose bounds are not constant, expected constants and a step of at least 1: the error depends on how often it runs}}
    %y = scf.for %i = %zero to %n step %one iter_args(%z = %x) -> (!ct) {
      %next = ckks.add %z, %z : !ct
      scf.yield %next : !ct
    }
    func.return %y : !ct
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @no_step(%x: !ct) -> !ct {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    // expected-error@+1 {{expected constants and a step of at least 1}}
    %y = scf.for %i = %zero to %one step %zero iter_args(%z = %x) -> (!ct) {
      scf.yield %z : !ct
    }
    func.return %y : !ct
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @long_loop(%x: !ct) -> !ct {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %many = arith.constant 4000000000000000000 : index
    // expected-error@+1 {{found a loop of 4000000000000000000 iterations, expected at most 65536}}
    %y = scf.for %i = %zero to %many step %one iter_args(%z = %x) -> (!ct) {
      scf.yield %z : !ct
    }
    func.return %y : !ct
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @start(%x: !ct) -> !ct {
    %y = func.call @again(%x) : (!ct) -> !ct
    func.return %y : !ct
  }
  func.func @again(%x: !ct) -> !ct {
    // expected-error@+1 {{found @again calling itself, expected no recursion: how often it runs is not known}}
    %y = func.call @again(%x) : (!ct) -> !ct
    func.return %y : !ct
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found @ping calling itself, expected no recursion}}
  func.func @ping(%x: !ct) -> !ct {
    %y = func.call @pong(%x) : (!ct) -> !ct
    func.return %y : !ct
  }
  func.func @pong(%x: !ct) -> !ct {
    %y = func.call @ping(%x) : (!ct) -> !ct
    func.return %y : !ct
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func private @elsewhere(!ct) -> !ct
  func.func @start(%x: !ct) -> !ct {
    // expected-error@+1 {{found a call of @elsewhere, which has no body here to follow}}
    %y = func.call @elsewhere(%x) : (!ct) -> !ct
    func.return %y : !ct
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @while(%x: !ct, %c: i1) -> !ct {
    // expected-error@+1 {{found scf.while on ciphertexts or plaintexts, expected an op whose error is known: those of ckks, dist and mem, func.call, scf.for, scf.if, arith.select and tensor.extract}}
    %y = scf.while (%z = %x) : (!ct) -> (!ct) {
      scf.condition(%c) %z : !ct
    } do {
    ^bb0(%z: !ct):
      scf.yield %z : !ct
    }
    func.return %y : !ct
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found several blocks in func.func, expected one: use scf.for and scf.if instead of branches}}
  func.func @jump(%x: !ct) -> !ct {
    cf.br ^next(%x : !ct)
  ^next(%y: !ct):
    func.return %y : !ct
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found fhelium.material outside of a function, expected it in one}}
  %x = fhelium.material @x : !ct
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @reduce(%x: !ct) {
    %group = fhelium.resource @group : !dist.group
    // expected-error@+1 {{found dist.all_reduce_add_ciphertext over a group of unknown size, expected the option ranks=: the error grows with it}}
    %sum = dist.all_reduce_add_ciphertext %x in %group : !ct
    func.return
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @beyond(%x: !ct) -> !ct {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %many = arith.constant 20 : index
    %y = scf.for %i = %zero to %many step %one iter_args(%z = %x) -> (!ct) {
      // expected-error@+1 {{found ckks.mul_integer with a message that may be as large as 2^1023, expected less: multiply fewer large numbers, or give a smaller largest=}}
      %next = ckks.mul_integer %z, 9223372036854775807 : !ct
      scf.yield %next : !ct
    }
    func.return %y : !ct
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @receive() {
    %group = fhelium.resource @group : !dist.group
    // expected-error@+1 {{found dist.recv with tag 2, and no dist.send of a !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation> with it, expected one: what is received is as precise as what is sent}}
    %x = dist.recv from 0 in %group tag 2 : !ct
    func.return
  }
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @passed_on(%x: !ct) {
    %group = fhelium.resource @group : !dist.group
    dist.send %x to 1 in %group tag 3 : !ct
    %y = dist.recv from 0 in %group tag 3 : !ct
    %z = ckks.add %y, %x : !ct
    // expected-error@+1 {{found messages of tag 3 that pass on what such messages bring, expected a tag of its own for each: how often they do is not known}}
    dist.send %z to 2 in %group tag 3 : !ct
    func.return
  }
}
