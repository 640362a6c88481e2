// A matrix-vector product by diagonals, with ckks.rotate_many: hoisted by its lowering.
// RUN: %opt %s -p convert-ckks-to-rns,canonicalize,cse | grep -c 'rns.i\?ntt' | filecheck %s --check-prefix=BEFORE
// RUN: %opt %s -p convert-ckks-to-rns,cse,rns-hoist-decompositions,rns-fuse-divisions,rns-merge-transforms,canonicalize,cse,dce | grep -c 'rns.i\?ntt' | filecheck %s --check-prefix=AFTER

// BEFORE: {{^11$}}
// AFTER: {{^11$}}

#parameters = #ckks.parameters<
  ring_degree = 8192,
  moduli = [[281474976694273], [274877562881], [274877202433], [274877153281]],
  special = [281474976546817], digits = 4, scale = 2^38, secret = ternary, security = 128>

!x = !ckks.ciphertext<level = 3, scale = 2^38, components = 2, form = evaluation>
!weight = !ckks.plaintext<level = 3, scale = 2^38, form = evaluation>
!product = !ckks.ciphertext<level = 3, scale = 2^76, components = 2, form = evaluation>

builtin.module attributes {ckks.parameters = #parameters} {
  func.func @main(%x: !x, %w0: !weight, %w1: !weight, %w2: !weight, %w3: !weight) -> !product {
    %key1 = fhelium.resource @key1 : !ckks.key<rotation, 1>
    %key2 = fhelium.resource @key2 : !ckks.key<rotation, 2>
    %key3 = fhelium.resource @key3 : !ckks.key<rotation, 3>
    %x1, %x2, %x3 = ckks.rotate_many %x by [1, 2, 3] with %key1, %key2, %key3 : (!x, !ckks.key<rotation, 1>, !ckks.key<rotation, 2>, !ckks.key<rotation, 3>) -> (!x, !x, !x)
    %y = ckks.weighted_sum %x, %x1, %x2, %x3 by %w0, %w1, %w2, %w3 : (!x, !x, !x, !x, !weight, !weight, !weight, !weight) -> !product
    func.return %y : !product
  }
}
