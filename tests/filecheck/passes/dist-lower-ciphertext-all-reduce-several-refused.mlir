// RUN: %opt %s --split-input-file -p dist-lower-ciphertext-all-reduce --verify-diagnostics

func.func @several(%x: !ckks.ciphertext, %group: !dist.group) -> !ckks.ciphertext {
  // expected-error@+1 {{dist.all_reduce_add_ciphertexts records fhelium.implementation = "mine", which lowering would lose}}
  %a, %b = dist.all_reduce_add_ciphertexts %x, %x in %group {fhelium.implementation = "mine"} : !ckks.ciphertext, !ckks.ciphertext
  func.return %b : !ckks.ciphertext
}

// -----

func.func @started(%x: !ckks.ciphertext, %group: !dist.group) -> !ckks.ciphertext {
  %p = dist.start {
    // expected-error@+1 {{found dist.all_reduce_add_ciphertexts of 2 ciphertexts in dist.start, which holds one collective: run dist-lower-ciphertext-all-reduce before dist-overlap-collectives}}
    %s, %t = dist.all_reduce_add_ciphertexts %x, %x in %group : !ckks.ciphertext, !ckks.ciphertext
    dist.yield %s, %t : !ckks.ciphertext, !ckks.ciphertext
  } : !dist.pending<!ckks.ciphertext, !ckks.ciphertext>
  %a, %b = dist.wait %p : !ckks.ciphertext, !ckks.ciphertext
  func.return %b : !ckks.ciphertext
}
