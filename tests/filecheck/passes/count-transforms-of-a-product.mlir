// A product, relinearized and rescaled: transforms before and after the passes that save some.
// Each digit costs one NTT, the decomposition one inverse, and each division one of both.
// RUN: %opt %s -p convert-ckks-to-rns,canonicalize,cse | grep -c 'rns.i\?ntt' | filecheck %s --check-prefix=BEFORE
// RUN: %opt %s -p convert-ckks-to-rns,cse,rns-hoist-decompositions,rns-fuse-divisions,rns-merge-transforms,canonicalize,cse,dce | grep -c 'rns.i\?ntt' | filecheck %s --check-prefix=AFTER

// BEFORE: {{^9$}}
// AFTER: {{^7$}}

#parameters = #ckks.parameters<
  ring_degree = 8192,
  moduli = [[281474976694273], [274877562881], [274877202433], [274877153281]],
  special = [281474976546817], digits = 4, scale = 2^38, secret = ternary, security = 128>

!x = !ckks.ciphertext<level = 3, scale = 2^38, components = 2, form = evaluation>
!product3 = !ckks.ciphertext<level = 3, scale = 2^76, components = 3, form = evaluation>
!product = !ckks.ciphertext<level = 3, scale = 2^76, components = 2, form = evaluation>
!result = !ckks.ciphertext<level = 2, scale = 274878660609.0664, components = 2, form = evaluation>

builtin.module attributes {ckks.parameters = #parameters} {
  func.func @main(%x: !x, %y: !x) -> !result {
    %key = fhelium.resource @key : !ckks.key<relinearization>
    %product3 = ckks.mul %x, %y : (!x, !x) -> !product3
    %product = ckks.relinearize %product3 with %key : !product3 -> !product
    %result = ckks.rescale %product : !product -> !result
    func.return %result : !result
  }
}
