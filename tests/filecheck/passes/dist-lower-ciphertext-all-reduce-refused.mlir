// RUN: %opt %s -p dist-lower-ciphertext-all-reduce --verify-diagnostics
// RUN: %opt %s -p 'fhelium-assign-implementations{target=torch op="dist.rank"}' | filecheck %s

// An assignment is a hard constraint: the pass keeps out rather than lose it, and does nothing.

// CHECK: dist.all_reduce_add_ciphertext %x in %group :
// CHECK: dist.all_reduce_add_ciphertext %a in %group {fhelium.implementation = "mine"}
func.func @assigned(%x: !ckks.ciphertext, %group: !dist.group) -> !ckks.ciphertext {
  %rank = dist.rank %group
  %a = dist.all_reduce_add_ciphertext %x in %group : !ckks.ciphertext
  // expected-error@+1 {{pass dist-lower-ciphertext-all-reduce: dist.all_reduce_add_ciphertext records fhelium.implementation = "mine", which lowering would lose: keep the op and leave this pass out, or drop the assignment first}}
  %b = dist.all_reduce_add_ciphertext %a in %group {fhelium.implementation = "mine"} : !ckks.ciphertext
  func.return %b : !ckks.ciphertext
}
