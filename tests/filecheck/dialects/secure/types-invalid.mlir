// RUN: %opt %s --split-input-file --verify-diagnostics

// What a secret tensor may not be, at the place where it says so.

// expected-error@+1 {{found the shape '', expected at least one dimension, each of a known size of at least 1: a secret number is a tensor<1>}}
"test.op"() {a = !secure.tensor<>} : () -> ()

// -----

// expected-error@+1 {{found the shape '4x0', expected at least one dimension, each of a known size of at least 1}}
"test.op"() {a = !secure.tensor<4x0>} : () -> ()

// -----

// expected-error@+1 {{found the shape '?x4', expected at least one dimension, each of a known size of at least 1}}
"test.op"() {a = !secure.tensor<?x4>} : () -> ()

// -----

// expected-error@+1 {{found 3 : i64, expected a layout, or none}}
"test.op"() {a = !secure.tensor<4, 3 : i64>} : () -> ()

// -----

// expected-error@+1 {{found 'xf64', expected '>'}}
"test.op"() {a = !secure.tensor<4xf64>} : () -> ()

// -----

// expected-error@+1 {{found '}', expected '>'}}
"test.op"() {a = !secure.tensor<4} : () -> ()
