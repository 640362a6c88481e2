// RUN: %opt %s --split-input-file --verify-diagnostics

// What a type or attribute of the dialect may not say, at the place where it says so.

// Fields.

// expected-error@+1 {{found 'size', expected one of the fields 'level', 'scale', 'form', 'components'}}
"test.op"() {a = !ckks.ciphertext<size = 1>} : () -> ()

// -----

// expected-error@+1 {{found 'components', expected one of the fields 'level', 'scale', 'form'}}
"test.op"() {a = !ckks.plaintext<components = 2>} : () -> ()

// -----

// expected-error@+1 {{found '>', expected one of the fields 'level', 'scale', 'form', 'components'}}
"test.op"() {a = !ckks.ciphertext<>} : () -> ()

// -----

// expected-error@+1 {{field 'level' is given twice: keep one of them}}
"test.op"() {a = !ckks.ciphertext<level = 1, level = 2>} : () -> ()

// -----

// expected-error@+1 {{found '1', expected '='}}
"test.op"() {a = !ckks.ciphertext<level 1>} : () -> ()

// -----

// expected-error@+1 {{found '}', expected '>'}}
"test.op"() {a = !ckks.ciphertext<level = 1} : () -> ()

// -----

// Levels, components and forms.

// expected-error@+1 {{found level -1, expected at least 0}}
"test.op"() {a = !ckks.ciphertext<level = -1>} : () -> ()

// -----

// expected-error@+1 {{found '1.5', expected integer literal}}
"test.op"() {a = !ckks.ciphertext<level = 1.5>} : () -> ()

// -----

// expected-error@+1 {{found 'true', expected integer literal}}
"test.op"() {a = !ckks.ciphertext<level = true>} : () -> ()

// -----

// expected-error@+1 {{found components 1, expected at least 2}}
"test.op"() {a = !ckks.ciphertext<components = 1>} : () -> ()

// -----

// expected-error@+1 {{found 'ntt', expected `evaluation`, or `coefficient`}}
"test.op"() {a = !ckks.ciphertext<form = ntt>} : () -> ()

// -----

// Scales.

// expected-error@+1 {{found scale 0, expected a positive number below 2^1024}}
"test.op"() {a = !ckks.ciphertext<scale = 0>} : () -> ()

// -----

// expected-error@+1 {{found scale -2, expected a positive number below 2^1024}}
"test.op"() {a = !ckks.plaintext<scale = -2.0>} : () -> ()

// -----

// expected-error@+1 {{found scale inf, expected a positive number below 2^1024}}
"test.op"() {a = !ckks.ciphertext<scale = 1.0e309>} : () -> ()

// -----

// expected-error@+1 {{found scale inf, expected a positive number below 2^1024}}
"test.op"() {a = !ckks.ciphertext<scale = 1000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000>} : () -> ()

// -----

// expected-error@+1 {{found 'nan', expected integer or float literal}}
"test.op"() {a = !ckks.ciphertext<scale = nan>} : () -> ()

// -----

// expected-error@+1 {{found scale 2^1024, expected 2^k with k up to 1023}}
"test.op"() {a = !ckks.ciphertext<scale = 2^1024>} : () -> ()

// -----

// expected-error@+1 {{found scale 2^-5, expected 2^k with k up to 1023}}
"test.op"() {a = !ckks.ciphertext<scale = 2^-5>} : () -> ()

// -----

// expected-error@+1 {{found scale 3^4, expected 2^k with k up to 1023}}
"test.op"() {a = !ckks.ciphertext<scale = 3^4>} : () -> ()

// -----

// expected-error@+1 {{expected 2^k with k up to 1023}}
"test.op"() {a = !ckks.ciphertext<scale = 2^99999>} : () -> ()

// -----

// Keys.

// expected-error@+1 {{found '}', expected '<'}}
"test.op"() {a = !ckks.key} : () -> ()

// -----

// expected-error@+1 {{found 'secret', expected `relinearization`, `rotation`, or `conjugation`}}
"test.op"() {a = !ckks.key<secret>} : () -> ()

// -----

// expected-error@+1 {{found '>', expected ',': a rotation key has a step, as in <rotation, 5>}}
"test.op"() {a = !ckks.key<rotation>} : () -> ()

// -----

// expected-error@+1 {{found '0.5', expected integer literal}}
"test.op"() {a = !ckks.key<rotation, 0.5>} : () -> ()

// -----

// expected-error@+1 {{found a step, expected none: drop it from a relinearization key}}
"test.op"() {a = !ckks.key<relinearization, 3>} : () -> ()

// -----

// Parameters.

// expected-error@+1 {{found no 'digits', 'security', expected all of the fields 'ring_degree', 'moduli', 'special', 'digits', 'scale', 'secret', 'security'}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[97]], special = [193], scale = 2^5, secret = ternary>} : () -> ()

// -----

// expected-error@+1 {{found no 'ring_degree', 'moduli', 'special', 'digits', 'scale', 'secret', 'security', expected all}}
"test.op"() {a = #ckks.parameters} : () -> ()

// -----

// expected-error@+1 {{found 'depth', expected one of the fields 'ring_degree', 'moduli',}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[97]], special = [193], digits = 1, scale = 2^5, secret = ternary, security = none, depth = 3>} : () -> ()

// -----

// expected-error@+1 {{found ring_degree 12, expected a power of two from 8 to 2^17}}
"test.op"() {a = #ckks.parameters<ring_degree = 12, moduli = [[97]], special = [193], digits = 1, scale = 2^5, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found ring_degree 4, expected at least 8}}
"test.op"() {a = #ckks.parameters<ring_degree = 4, moduli = [[97]], special = [193], digits = 1, scale = 2^5, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found ring_degree 262144, expected a power of two from 8 to 2^17}}
"test.op"() {a = #ckks.parameters<ring_degree = 262144, moduli = [[97]], special = [193], digits = 1, scale = 2^5, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found '97', expected '['}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [97], special = [193], digits = 1, scale = 2^5, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found an empty group in moduli, expected a prime in each level}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [], special = [193], digits = 1, scale = 2^5, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found an empty group in moduli, expected a prime in each level}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[97], []], special = [193], digits = 1, scale = 2^5, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found no special primes, expected at least one to switch keys by}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[97]], special = [], digits = 1, scale = 2^5, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found modulus 2, expected at least 3}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[2]], special = [193], digits = 1, scale = 2^5, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found the modulus 99, expected a prime below 2^50 that is 1 modulo 2 * ring_degree = 16}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[99]], special = [193], digits = 1, scale = 2^5, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found the modulus 1125899906842897, expected a prime below 2^50}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[97]], special = [1125899906842897], digits = 1, scale = 2^5, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found a prime twice in moduli and special: use each once}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[97]], special = [97], digits = 1, scale = 2^5, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found a prime twice in moduli and special: use each once}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[113], [97, 113]], special = [193], digits = 1, scale = 2^5, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found digits 0, expected at least 1}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[97]], special = [193], digits = 0, scale = 2^5, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found 3 digits, expected 1 to 2, the number of primes in Q}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[97, 113]], special = [193], digits = 3, scale = 2^5, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found scale 0, expected a positive number}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[97]], special = [193], digits = 1, scale = 0.0, secret = ternary, security = none>} : () -> ()

// -----

// expected-error@+1 {{found secret = gaussian, expected ternary}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[97]], special = [193], digits = 1, scale = 2^5, secret = gaussian, security = none>} : () -> ()

// -----

// expected-error@+1 {{found security = 192, expected 128 or none}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[97]], special = [193], digits = 1, scale = 2^5, secret = ternary, security = 192>} : () -> ()

// -----

// expected-error@+1 {{found 'low', expected 128 or none}}
"test.op"() {a = #ckks.parameters<ring_degree = 8, moduli = [[97]], special = [193], digits = 1, scale = 2^5, secret = ternary, security = low>} : () -> ()
