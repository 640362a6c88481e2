// RUN: %opt %s --split-input-file --verify-diagnostics

func.func @numbers(%c: complex<f64>, %n: none, %wide: i128, %z: i0, %u: ui8, %s: si64, %f: f128, %v: vector<2xi64>, %m: memref<2xi64>, %t: tuple<i64>, %group: !dist.group) {
  // expected-error@+1 {{'dist.broadcast': found a payload complex<f64>, expected ciphertexts, plaintexts, residues, moduli, a tensor, or a number: index, i1 to i64, bf16, f16, f32 or f64}}
  %1 = dist.broadcast %c from 0 in %group : complex<f64>
  // expected-error@+1 {{'dist.broadcast': found a payload none, expected ciphertexts}}
  %2 = dist.broadcast %n from 0 in %group : none
  // expected-error@+1 {{'dist.send': found a payload i128, expected ciphertexts}}
  dist.send %wide to 0 in %group : i128
  // expected-error@+1 {{'dist.broadcast': found a payload i0, expected ciphertexts}}
  %3 = dist.broadcast %z from 0 in %group : i0
  // expected-error@+1 {{'dist.recv': found a payload ui8, expected ciphertexts}}
  %4 = dist.recv from 0 in %group : ui8
  // expected-error@+1 {{'dist.broadcast': found a payload si64, expected ciphertexts}}
  %5 = dist.broadcast %s from 0 in %group : si64
  // expected-error@+1 {{'dist.broadcast': found a payload f128, expected ciphertexts}}
  %6 = dist.broadcast %f from 0 in %group : f128
  // expected-error@+1 {{'dist.broadcast': found a payload vector<2xi64>, expected ciphertexts}}
  %7 = dist.broadcast %v from 0 in %group : vector<2xi64>
  // expected-error@+1 {{'dist.broadcast': found a payload memref<2xi64>, expected ciphertexts}}
  %8 = dist.broadcast %m from 0 in %group : memref<2xi64>
  // expected-error@+1 {{'dist.all_reduce': found a payload tuple<i64>, expected ciphertexts}}
  %9 = dist.all_reduce %t in %group : tuple<i64> combine {
  ^bb0(%l: tuple<i64>, %r: tuple<i64>):
    dist.yield %l : tuple<i64>
  }
  func.return
}

// -----

func.func @tensors(%four: tensor<2xi4>, %wide: tensor<2xi128>, %f: tensor<2xf80>, %c: tensor<2xcomplex<f16>>, %any: tensor<*xi64>, %group: !dist.group) {
  // expected-error@+1 {{'dist.broadcast': found a payload with elements of i4, expected index, i1, integers of 8, 16, 32 or 64 bits, bf16, f16, f32, f64, or complex<f32> and complex<f64>}}
  %1 = dist.broadcast %four from 0 in %group : tensor<2xi4>
  // expected-error@+1 {{'dist.all_gather': found a payload with elements of i128, expected index}}
  %2 = dist.all_gather %wide along 0 in %group : tensor<2xi128> -> tensor<4xi128>
  // expected-error@+1 {{'dist.reduce_scatter': found a payload with elements of f80, expected index}}
  %3 = dist.reduce_scatter %f along 0 in %group : tensor<2xf80> -> tensor<2xf80> combine {
  ^bb0(%l: tensor<2xf80>, %r: tensor<2xf80>):
    dist.yield %l : tensor<2xf80>
  }
  // expected-error@+1 {{'dist.scatter': found a payload with elements of complex<f16>, expected index}}
  %4 = dist.scatter %c from 0 along 0 in %group : tensor<2xcomplex<f16>> -> tensor<2xcomplex<f16>>
  // expected-error@+1 {{'dist.broadcast': found a payload tensor<*xi64>, expected ciphertexts}}
  %5 = dist.broadcast %any from 0 in %group : tensor<*xi64>
  func.return
}

// -----

func.func @without_an_axis(%x: tensor<i64>, %n: i64, %group: !dist.group) {
  // expected-error@+1 {{'dist.all_gather': found a payload tensor<i64>, expected ciphertexts, plaintexts, residue polynomials or a tensor: it has no axis to cut or to join}}
  %1 = dist.all_gather %x along 0 in %group : tensor<i64> -> tensor<i64>
  // expected-error@+1 {{'dist.scatter': found a payload i64, expected ciphertexts, plaintexts, residue polynomials or a tensor: it has no axis to cut or to join}}
  %2 = dist.scatter %n from 0 along 0 in %group : i64 -> i64
  func.return
}
