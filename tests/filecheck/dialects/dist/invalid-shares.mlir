// RUN: %opt %s --split-input-file --verify-diagnostics

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!other = !ckks.ciphertext<level = 0, scale = 2^6, components = 2, form = evaluation>
!poly = !rns.poly<basis = Q[0:4], components = 2, form = evaluation>
!low = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!three = !rns.poly<basis = Q[0:2], components = 3, form = evaluation>
!next = !rns.poly<basis = Q[3:6], components = 2, form = evaluation>

func.func @axes(%x: tensor<4x3xi64>, %i: i32, %ct: !ct, %poly: !poly, %group: !dist.group) {
  // expected-error@+1 {{'dist.all_gather': found axis 2 of tensor<4x3xi64>, expected a dimension from 0 to 1}}
  %a = dist.all_gather %x along 2 in %group : tensor<4x3xi64> -> tensor<4x3xi64>
  // expected-error@+1 {{'dist.all_gather': found axis -1 of tensor<4x3xi64>, expected a dimension from 0 to 1}}
  %b = "dist.all_gather"(%x, %group) <{axis = -1 : i64}> : (tensor<4x3xi64>, !dist.group) -> tensor<4x3xi64>
  // expected-error@+1 {{'dist.gather': found axis 1 of !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>, expected 0, the batch; all_gather, gather, scatter and reduce_scatter know the limbs of residue polynomials too}}
  %c = dist.gather %ct to 0 along 1 in %group : !ct -> !ct
  // expected-error@+1 {{'dist.all_to_all': found axis limbs of !rns.poly<basis = Q[0:4], components = 2, form = evaluation>, expected 0, the batch}}
  %d = dist.all_to_all %poly along limbs in %group : !poly -> !poly
  // expected-error@+1 {{'dist.scatter': found a payload i32, expected ciphertexts, plaintexts, residue polynomials or a tensor: it has no axis to cut or to join}}
  %e = dist.scatter %i from 0 along 0 in %group : i32 -> i32
  // expected-error@+1 {{'dist.all_gather': found a payload i32, expected ciphertexts}}
  %f = dist.all_gather %x along 0 in %group : tensor<4x3xi64> -> i32
  func.return
}

func.func @types(%x: tensor<4x3xi64>, %ct: !ct, %poly: !poly, %group: !dist.group) {
  // expected-error@+1 {{'dist.all_gather': found !ckks.ciphertext<level = 0, scale = 2^6, components = 2, form = evaluation>, expected !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>: the batch is in no type}}
  %a = dist.all_gather %ct along 0 in %group : !ct -> !other
  // expected-error@+1 {{'dist.all_gather': found tensor<4x2xi64>, expected tensor<4x3xi64> with another size of dimension 0 alone}}
  %b = dist.all_gather %x along 0 in %group : tensor<4x3xi64> -> tensor<4x2xi64>
  // expected-error@+1 {{'dist.all_to_all': found tensor<4x3xi32>, expected tensor<4x3xi64> with another size of dimension 0 alone}}
  %c = dist.all_to_all %x along 0 in %group : tensor<4x3xi64> -> tensor<4x3xi32>
  // expected-error@+1 {{found tensor<4xi64>, expected tensor<4x3xi64> with another size of dimension 1 alone}}
  %d = dist.all_to_all %x along 1 in %group : tensor<4x3xi64> -> tensor<4xi64>
  // expected-error@+1 {{'dist.all_gather': found a share of 4 along dimension 0, expected at most the 3 of the whole}}
  %e = dist.all_gather %x along 0 in %group : tensor<4x3xi64> -> tensor<3x3xi64>
  // expected-error@+1 {{'dist.scatter': found a share of 5 along dimension 0, expected at most the 4 of the whole}}
  %f = dist.scatter %x from 0 along 0 in %group : tensor<4x3xi64> -> tensor<5x3xi64>
  func.return
}

func.func @limbs(%x: tensor<4xi64>, %ct: !ct, %poly: !poly, %low: !low, %three: !three, %next: !next, %group: !dist.group) {
  // expected-error@+1 {{'dist.all_gather': found the limbs of tensor<4xi64>, expected residue polynomials: lower to rns first, or name a dimension}}
  %a = dist.all_gather %x along limbs in %group : tensor<4xi64> -> tensor<4xi64>
  // expected-error@+1 {{found the limbs of !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>, expected residue polynomials}}
  %b = dist.all_gather %low along limbs in %group : !low -> !ct
  // expected-error@+1 {{found a share !rns.poly<basis = Q[0:2], components = 3, form = evaluation> of !rns.poly<basis = Q[0:4], components = 2, form = evaluation>, expected the same components and form}}
  %c = dist.all_gather %three along limbs in %group : !three -> !poly
  // expected-error@+1 {{found a share #rns.basis<Q[3:6]> of #rns.basis<Q[0:4]>, expected limbs of the whole}}
  %d = dist.all_gather %next along limbs in %group : !next -> !poly
  // expected-error@+1 {{'dist.scatter': found a share #rns.basis<Q[0:4]> of #rns.basis<Q[0:2]>, expected limbs of the whole}}
  %e = dist.scatter %low from 0 along limbs in %group : !low -> !poly
  // expected-error@+1 {{'dist.reduce_scatter': found a share #rns.basis<Q[0:4]> of #rns.basis<Q[0:2]>, expected limbs of the whole}}
  %f = dist.reduce_scatter %low along limbs in %group : !low -> !poly combine {
  ^bb0(%l: !poly, %r: !poly):
    dist.yield %l : !poly
  }
  func.return
}

// -----

func.func @syntax(%x: tensor<4xi64>, %group: !dist.group) {
  // expected-error@+1 {{expected the number of a dimension, or `limbs`}}
  %a = dist.all_gather %x along batch in %group : tensor<4xi64> -> tensor<4xi64>
  func.return
}
