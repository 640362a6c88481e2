// RUN: %opt %s --no-aliases | filecheck %s
// RUN: %opt %s --no-aliases | %opt --no-aliases | filecheck %s
// RUN: %opt %s --no-aliases --print-op-generic | filecheck %s
// RUN: %opt %s --no-aliases --print-op-generic | %opt --no-aliases | filecheck %s

// A field that no pass has assigned is absent; the fields print in one order.

"test.op"() {
  // CHECK:      nothing = !ckks.ciphertext,
  nothing = !ckks.ciphertext,
  // CHECK-SAME: some = !ckks.ciphertext<scale = 2^40, form = coefficient>,
  some = !ckks.ciphertext<form = coefficient, scale = 2^40>,
  // CHECK-SAME: all = !ckks.ciphertext<level = 3, scale = 2^40, components = 2, form = evaluation>,
  all = !ckks.ciphertext<form = evaluation, components = 2, level = 3, scale = 2^40>,
  // CHECK-SAME: product = !ckks.ciphertext<level = 0, components = 3>,
  product = !ckks.ciphertext<level = 0, components = 3>,
  // CHECK-SAME: plain = !ckks.plaintext<level = 3, scale = 2^40, form = evaluation>,
  plain = !ckks.plaintext<form = evaluation, level = 3, scale = 2^40>,
  // CHECK-SAME: bare = !ckks.plaintext,
  bare = !ckks.plaintext,
  // CHECK-SAME: nested = tensor<?x4x!ckks.ciphertext<level = 1>>,
  nested = tensor<?x4x!ckks.ciphertext<level = 1>>,
  // CHECK-SAME: call = (!ckks.ciphertext) -> !ckks.plaintext}
  call = (!ckks.ciphertext) -> !ckks.plaintext
} : () -> ()

// A scale prints as 2^k where it is a power of two from 1 upwards, and as the shortest decimal that
// parses back otherwise.

"test.op"() {
  // CHECK:      one = !ckks.plaintext<scale = 2^0>,
  one = !ckks.plaintext<scale = 1>,
  // CHECK-SAME: decimal_power = !ckks.plaintext<scale = 2^40>,
  decimal_power = !ckks.plaintext<scale = 1099511627776.0>,
  // CHECK-SAME: integer_power = !ckks.plaintext<scale = 2^40>,
  integer_power = !ckks.plaintext<scale = 1099511627776>,
  // CHECK-SAME: greatest_power = !ckks.plaintext<scale = 2^1023>,
  greatest_power = !ckks.plaintext<scale = 2^1023>,
  // CHECK-SAME: prime = !ckks.plaintext<scale = 274877562881.0>,
  prime = !ckks.plaintext<scale = 274877562881>,
  // CHECK-SAME: digits = !ckks.plaintext<scale = 274878955521.11816>,
  digits = !ckks.plaintext<scale = 274878955521.11816>,
  // CHECK-SAME: exponent = !ckks.plaintext<scale = 7.555765656060634e+22>,
  exponent = !ckks.plaintext<scale = 7.555765656060634e22>,
  // CHECK-SAME: point = !ckks.plaintext<scale = 3.0e+30>,
  point = !ckks.plaintext<scale = 3.0e30>,
  // CHECK-SAME: half = !ckks.plaintext<scale = 0.5>,
  half = !ckks.plaintext<scale = 0.5>,
  // CHECK-SAME: least = !ckks.plaintext<scale = 5.0e-324>,
  least = !ckks.plaintext<scale = 4.9e-324>,
  // CHECK-SAME: greatest = !ckks.plaintext<scale = 1.7976931348623157e+308>}
  greatest = !ckks.plaintext<scale = 1.7976931348623157e308>
} : () -> ()

"test.op"() {
  // CHECK:      relinearization = !ckks.key<relinearization>,
  relinearization = !ckks.key<relinearization>,
  // CHECK-SAME: left = !ckks.key<rotation, 5>,
  left = !ckks.key<rotation, 5>,
  // CHECK-SAME: right = !ckks.key<rotation, -5>,
  right = !ckks.key<rotation, -5>,
  // CHECK-SAME: conjugation = !ckks.key<conjugation>,
  conjugation = !ckks.key<conjugation>,
  // CHECK-SAME: kind = #ckks<key_kind rotation>}
  kind = #ckks<key_kind rotation>
} : () -> ()

// Parameters: the primes of Q grouped by level, those of P, and the rest, all of them given.

"test.op"() {
  // CHECK:      small = #ckks.parameters<ring_degree = 8, moduli = {{\[\[97\]\]}}, special = [193], digits = 1, scale = 2^5, secret = ternary, security = none>,
  small = #ckks.parameters<ring_degree = 8, moduli = [[97]], special = [193], digits = 1, scale = 2^5, secret = ternary, security = none>,
  // CHECK-SAME: groups = #ckks.parameters<ring_degree = 8, moduli = {{\[\[97, 113\], \[193\], \[241, 257\]\]}}, special = [337, 353], digits = 2, scale = 33.5, secret = ternary, security = 128>}
  groups = #ckks.parameters<security = 128, secret = ternary, scale = 33.5, digits = 2, special = [337, 353],
                            moduli = [[97, 113], [193], [241, 257]], ring_degree = 8>
} : () -> ()
