// RUN: %opt %s -p canonicalize | filecheck %s --check-prefix=CANONICALIZE
// RUN: %opt %s -p cse,canonicalize,dce | filecheck %s

// Questions are pure: equal ones merge, unused ones go. Collectives stay as they are, each in its
// place: ranks would otherwise wait for each other.

// CHECK-LABEL: func.func @queries
// CHECK-NEXT:  %a = dist.rank %group
// CHECK-NEXT:  %c = dist.rank %other
// CHECK-NEXT:  %d = dist.group_size %group
// CHECK-NEXT:  func.return %a, %a, %c, %d
// CANONICALIZE-LABEL: func.func @queries
func.func @queries(%group: !dist.group, %other: !dist.group) -> (index, index, index, index) {
  %a = dist.rank %group
  %b = dist.rank %group
  %c = dist.rank %other
  %d = dist.group_size %group
  %unused = dist.group_size %other
  func.return %a, %b, %c, %d : index, index, index, index
}

// CHECK-LABEL:        func.func @equal_and_unused
// CHECK-NEXT:         dist.all_reduce_add_ciphertext
// CHECK-NEXT:         dist.all_reduce_add_ciphertext
// CHECK-NEXT:         dist.broadcast
// CHECK-NEXT:         dist.broadcast
// CHECK-NEXT:         dist.all_reduce %x
// CHECK:              dist.all_reduce %x
// CHECK-NOT:          dist.rank
// CHECK:              func.return
// CANONICALIZE-LABEL: func.func @equal_and_unused
// CANONICALIZE-NEXT:  dist.all_reduce_add_ciphertext
// CANONICALIZE-NEXT:  dist.all_reduce_add_ciphertext
// CANONICALIZE-NEXT:  dist.broadcast
// CANONICALIZE-NEXT:  dist.broadcast
// CANONICALIZE-NEXT:  dist.all_reduce %x
// CANONICALIZE:       dist.all_reduce %x
func.func @equal_and_unused(%x: !ckks.ciphertext, %group: !dist.group) {
  %a = dist.all_reduce_add_ciphertext %x in %group : !ckks.ciphertext
  %b = dist.all_reduce_add_ciphertext %x in %group : !ckks.ciphertext
  %c = dist.broadcast %x from 0 in %group : !ckks.ciphertext
  %d = dist.broadcast %x from 0 in %group : !ckks.ciphertext
  %e = dist.all_reduce %x in %group : !ckks.ciphertext combine {
  ^bb0(%l: !ckks.ciphertext, %r: !ckks.ciphertext):
    dist.yield %l : !ckks.ciphertext
  }
  %f = dist.all_reduce %x in %group : !ckks.ciphertext combine {
  ^bb0(%l: !ckks.ciphertext, %r: !ckks.ciphertext):
    dist.yield %l : !ckks.ciphertext
  }
  %unused = dist.rank %group
  func.return
}

// Identities and merging reach into a combine region, whose result is what it was.
// CHECK-LABEL: func.func @inside
// CHECK:         %s = ckks.add %l, %r
// CHECK-NEXT:    %u = ckks.sub %s, %s
// CHECK-NEXT:    dist.yield %u
func.func @inside(%x: !ckks.ciphertext, %group: !dist.group) -> !ckks.ciphertext {
  %a = dist.all_reduce %x in %group : !ckks.ciphertext combine {
  ^bb0(%l: !ckks.ciphertext, %r: !ckks.ciphertext):
    %s = ckks.add %l, %r : !ckks.ciphertext
    %t = ckks.add %l, %r : !ckks.ciphertext
    %n = ckks.negate %t : !ckks.ciphertext
    %u = ckks.add %s, %n : !ckks.ciphertext
    dist.yield %u : !ckks.ciphertext
  }
  func.return %a : !ckks.ciphertext
}
