// RUN: %opt %s --split-input-file --verify-diagnostics

// What a type or attribute of the dialect may not say, at the place where it says so.

// Bases.

// expected-error@+1 {{found no limbs, expected a basis such as Q[0:4] P[0:2]}}
"test.op"() {a = #rns.basis<>} : () -> ()

// -----

// expected-error@+1 {{found no limbs, expected a basis such as Q[0:4] P[0:2]}}
"test.op"() {a = #rns.basis<Q[]>} : () -> ()

// -----

// expected-error@+1 {{found no limbs, expected a basis such as}}
"test.op"() {a = !rns.moduli<R[0]>} : () -> ()

// -----

// expected-error@+1 {{found 'Q', expected '>'}}
"test.op"() {a = #rns.basis<P[0] Q[0]>} : () -> ()

// -----

// expected-error@+1 {{found the limbs [1, 0], expected indices that increase}}
"test.op"() {a = #rns.basis<Q[1, 0]>} : () -> ()

// -----

// expected-error@+1 {{found the limbs [0, 1, 1, 2], expected indices that increase}}
"test.op"() {a = #rns.basis<P[0:2, 1:3]>} : () -> ()

// -----

// expected-error@+1 {{found the range 2:2, expected first < end <= 4096}}
"test.op"() {a = #rns.basis<Q[2:2]>} : () -> ()

// -----

// expected-error@+1 {{found the range 3:1, expected first < end <= 4096}}
"test.op"() {a = #rns.basis<Q[3:1]>} : () -> ()

// -----

// expected-error@+1 {{found the range 0:4097, expected first < end <= 4096}}
"test.op"() {a = #rns.basis<Q[0:4097]>} : () -> ()

// -----

// expected-error@+1 {{found the range 4096:4097, expected first < end <= 4096}}
"test.op"() {a = #rns.basis<Q[4096]>} : () -> ()

// -----

// expected-error@+1 {{found '-', expected integer literal}}
"test.op"() {a = #rns.basis<Q[-1]>} : () -> ()

// -----

// expected-error@+1 {{found '0', expected '['}}
"test.op"() {a = !rns.moduli<Q 0>} : () -> ()

// -----

// expected-error@+1 {{found '}', expected '<'}}
"test.op"() {a = !rns.moduli} : () -> ()

// -----

// Polynomials.

// expected-error@+1 {{found no 'components', 'form', expected all of the fields 'basis', 'components', 'form'}}
"test.op"() {a = !rns.poly<basis = Q[0]>} : () -> ()

// -----

// expected-error@+1 {{found no 'basis', 'components', 'form', expected all}}
"test.op"() {a = !rns.poly} : () -> ()

// -----

// expected-error@+1 {{found 'level', expected one of the fields 'basis', 'components', 'form'}}
"test.op"() {a = !rns.poly<level = 3>} : () -> ()

// -----

// expected-error@+1 {{field 'form' is given twice: keep one of them}}
"test.op"() {a = !rns.poly<form = evaluation, form = evaluation>} : () -> ()

// -----

// expected-error@+1 {{found components 0, expected at least 1}}
"test.op"() {a = !rns.poly<basis = Q[0], components = 0, form = evaluation>} : () -> ()

// -----

// expected-error@+1 {{found 'ntt', expected `evaluation`, or `coefficient`}}
"test.op"() {a = !rns.poly<basis = Q[0], components = 1, form = ntt>} : () -> ()

// -----

// expected-error@+1 {{found no limbs, expected a basis such as Q[0:4] P[0:2]}}
"test.op"() {a = !rns.poly<basis = , components = 1, form = evaluation>} : () -> ()
