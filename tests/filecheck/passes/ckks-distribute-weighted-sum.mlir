// RUN: %opt %s -p "ckks-distribute-weighted-sum{ranks=2 least=4 group=pair},dist-verify-spmd{ranks=2}" | filecheck %s
// RUN: %opt %s -p "ckks-distribute-weighted-sum{ranks=2 least=4}" --print-debuginfo | filecheck %s --check-prefix=PLACE
// RUN: %opt %s -p "ckks-distribute-weighted-sum{ranks=1}" | filecheck %s --check-prefix=ALONE
// RUN: %opt %s -p "ckks-distribute-weighted-sum{ranks=2}" | filecheck %s --check-prefix=FEW
// RUN: %opt %s -p "ckks-distribute-weighted-sum{ranks=3 least=4}" | filecheck %s --check-prefix=THREE

// ALONE-NOT: dist.all_reduce

!ct = !ckks.ciphertext
!pt = !ckks.plaintext
!k1 = !ckks.key<rotation, 1>
!k2 = !ckks.key<rotation, 2>
!k4 = !ckks.key<rotation, 4>
!v = tensor<8xf64>

// Each rank gets one of two giant steps, and what it needs of the baby steps. Plaintexts stay.
// CHECK-LABEL: func.func @baby_and_giant_steps
// CHECK-NEXT:  %[[group:.*]] = fhelium.resource @pair : !dist.group
// CHECK-NEXT:  %[[number:.*]] = dist.rank %[[group]] of 2
// CHECK:       %a = ckks.encode %w
// CHECK-NEXT:  %b = ckks.encode %w
// CHECK-NEXT:  %[[zero:.*]] = arith.constant 0 : index
// CHECK-NEXT:  %[[first:.*]] = arith.cmpi eq, %[[number]], %[[zero]] : index
// CHECK-NEXT:  %[[share:.*]] = scf.if %[[first]] -> (!ct) {
// CHECK-NEXT:    %x1, %x2 = ckks.rotate_many %x by [1, 2] with %k1, %k2
// CHECK-NEXT:    %s1 = ckks.weighted_sum %x, %x1, %x2 by %a, %b, %b
// CHECK-NEXT:    %g1 = ckks.rotate %s1 by 4 with %k4
// CHECK-NEXT:    %[[product:.*]] = ckks.weighted_sum %x2 by %b
// CHECK-NEXT:    %[[sum:.*]] = ckks.add %g1, %[[product]] : !ct
// CHECK-NEXT:    scf.yield %[[sum]] : !ct
// CHECK-NEXT:  } else {
// CHECK-NEXT:    %[[x1:.*]] = ckks.rotate_many %x by [1] with %k1
// CHECK-NEXT:    %s2 = ckks.weighted_sum %x, %[[x1]] by %a, %b
// CHECK-NEXT:    %g2 = ckks.rotate %s2 by 4 with %k4
// CHECK-NEXT:    %[[products:.*]] = ckks.weighted_sum %x, %[[x1]] by %a, %a
// CHECK-NEXT:    %[[difference:.*]] = ckks.sub %[[products]], %g2 : !ct
// CHECK-NEXT:    scf.yield %[[difference]] : !ct
// CHECK-NEXT:  }
// CHECK-NEXT:  %y = dist.all_reduce_add_ciphertext %[[share]] in %[[group]] : !ct
// CHECK-NEXT:  func.return %y : !ct

// Copies stand where their ops stood, and new ops where the sum or the function did.
// PLACE-LABEL: func.func @baby_and_giant_steps
// PLACE:         dist.rank {{.*}} loc("{{.*}}":[[# @LINE + 7]]:
// PLACE:         ckks.rotate_many {{.*}} loc("{{.*}}":[[# @LINE + 13]]:
// PLACE:         ckks.weighted_sum %x2 by {{.*}} loc("{{.*}}":[[# @LINE + 19]]:
// PLACE:         dist.all_reduce_add_ciphertext {{.*}} loc("{{.*}}":[[# @LINE + 18]]:

// Five terms are fewer than eight.
// FEW-LABEL: func.func @baby_and_giant_steps
func.func @baby_and_giant_steps(%x: !ct, %w: !v) -> !ct {
  // FEW-NOT: dist.all_reduce
  %k1 = fhelium.resource @rotation_1 : !k1
  %k2 = fhelium.resource @rotation_2 : !k2
  %k4 = fhelium.resource @rotation_4 : !k4
  %a = ckks.encode %w : !v -> !pt
  %b = ckks.encode %w : !v -> !pt
  %x1, %x2 = ckks.rotate_many %x by [1, 2] with %k1, %k2 : (!ct, !k1, !k2) -> (!ct, !ct)
  %g0 = ckks.weighted_sum %x, %x1, %x2 by %a, %a, %b : (!ct, !ct, !ct, !pt, !pt, !pt) -> !ct
  %s1 = ckks.weighted_sum %x, %x1, %x2 by %a, %b, %b : (!ct, !ct, !ct, !pt, !pt, !pt) -> !ct
  %g1 = ckks.rotate %s1 by 4 with %k4 : !ct, !k4
  %s2 = ckks.weighted_sum %x, %x1 by %a, %b : (!ct, !ct, !pt, !pt) -> !ct
  %g2 = ckks.rotate %s2 by 4 with %k4 : !ct, !k4
  %t = ckks.add %g0, %g1 : !ct
  %y = ckks.sub %t, %g2 : !ct
  func.return %y : !ct
}

// Three ranks, of which the last has only subtracted terms.
// THREE-LABEL: func.func @three
// THREE:         %[[n:.*]] = dist.rank {{.*}} of 3
// THREE:         %[[zero:.*]] = arith.constant 0 : index
// THREE-NEXT:    arith.cmpi eq, %[[n]], %[[zero]] : index
// THREE-NEXT:    scf.if
// THREE-NEXT:      ckks.add %x, %y : !ct
// THREE:         } else {
// THREE-NEXT:      %[[one:.*]] = arith.constant 1 : index
// THREE-NEXT:      arith.cmpi eq, %[[n]], %[[one]] : index
// THREE-NEXT:      %[[inner:.*]] = scf.if
// THREE-NEXT:        ckks.sub %y, %x : !ct
// THREE:           } else {
// THREE-NEXT:        %[[sum:.*]] = ckks.add %y, %x : !ct
// THREE-NEXT:        %[[negative:.*]] = ckks.negate %[[sum]] : !ct
// THREE-NEXT:        scf.yield %[[negative]] : !ct
// THREE-NEXT:      }
// THREE-NEXT:      scf.yield %[[inner]] : !ct
// THREE-NEXT:    }
// THREE-NEXT:    dist.all_reduce_add_ciphertext
func.func @three(%x: !ct, %y: !ct) -> !ct {
  %0 = ckks.add %x, %y : !ct
  %1 = ckks.sub %0, %y : !ct
  %2 = ckks.add %1, %y : !ct
  %3 = ckks.sub %2, %x : !ct
  %4 = ckks.sub %3, %x : !ct
  func.return %4 : !ct
}

// What all ranks need, and what others use, is computed in front. A sum that another one is
// computed from is split for itself; sums in one function ask once for the rank.
// CHECK-LABEL: func.func @two_sums
// CHECK-COUNT-1: dist.rank
// CHECK-NOT:   dist.rank
// CHECK:       %r = ckks.rotate %x by 1
// CHECK:       scf.if
// CHECK-NEXT:    ckks.weighted_sum %x, %x by
// CHECK:       } else {
// CHECK-NEXT:    ckks.weighted_sum %r, %r by
// CHECK:       %s = dist.all_reduce_add_ciphertext
// CHECK-NEXT:  %u = ckks.rotate %s by 1
// CHECK:       scf.if
// CHECK-NEXT:    ckks.weighted_sum
// CHECK:       %y = dist.all_reduce_add_ciphertext
// CHECK-NEXT:  func.return %y, %r : !ct, !ct
func.func @two_sums(%x: !ct, %a: !pt) -> (!ct, !ct) {
  %k1 = fhelium.resource @rotation_1 : !k1
  %r = ckks.rotate %x by 1 with %k1 : !ct, !k1
  %s = ckks.weighted_sum %x, %r, %x, %r by %a, %a, %a, %a : (!ct, !ct, !ct, !ct, !pt, !pt, !pt, !pt) -> !ct
  %u = ckks.rotate %s by 1 with %k1 : !ct, !k1
  %y = ckks.weighted_sum %u, %u, %u, %u by %a, %a, %a, %a : (!ct, !ct, !ct, !ct, !pt, !pt, !pt, !pt) -> !ct
  func.return %y, %r : !ct, !ct
}

// What a rank has already costs it nothing more: both have three products.
// CHECK-LABEL: func.func @already_there
// CHECK:       %r = ckks.rotate %x by 1
// CHECK:       scf.if
// CHECK-NEXT:    ckks.weighted_sum %r, %r, %x by
// CHECK:       } else {
// CHECK-NEXT:    ckks.weighted_sum %r, %x, %x by
func.func @already_there(%x: !ct, %a: !pt) -> !ct {
  %k1 = fhelium.resource @rotation_1 : !k1
  %r = ckks.rotate %x by 1 with %k1 : !ct, !k1
  %y = ckks.weighted_sum %r, %r, %r, %x, %x, %x by %a, %a, %a, %a, %a, %a : (!ct, !ct, !ct, !ct, !ct, !ct, !pt, !pt, !pt, !pt, !pt, !pt) -> !ct
  func.return %y : !ct
}

// Both need %n, but one alone needs %b, which shares a decomposition with what %n is made of.
// CHECK-LABEL: func.func @behind_part
// CHECK-NOT:   ckks.rotate_many
// CHECK:       scf.if
// CHECK-NEXT:    %a = ckks.rotate_many %x by [1] with
// CHECK-NEXT:    %n = ckks.negate %a : !ct
// CHECK:       } else {
// CHECK-NEXT:    %[[a:.*]], %b = ckks.rotate_many %x by [1, 2] with
// CHECK-NEXT:    ckks.negate %[[a]] : !ct
func.func @behind_part(%x: !ct, %p: !pt) -> !ct {
  %k1 = fhelium.resource @rotation_1 : !k1
  %k2 = fhelium.resource @rotation_2 : !k2
  %a, %b = ckks.rotate_many %x by [1, 2] with %k1, %k2 : (!ct, !k1, !k2) -> (!ct, !ct)
  %n = ckks.negate %a : !ct
  %y = ckks.weighted_sum %n, %n, %n, %b by %p, %p, %p, %p : (!ct, !ct, !ct, !ct, !pt, !pt, !pt, !pt) -> !ct
  func.return %y : !ct
}

// All ranks make the same turns of this loop.
// CHECK-LABEL: func.func @loop
// CHECK:       scf.for
// CHECK:         dist.all_reduce_add_ciphertext
func.func @loop(%x: !ct, %a: !pt) -> !ct {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %y = scf.for %i = %zero to %three step %one iter_args(%z = %x) -> (!ct) {
    %s = ckks.weighted_sum %z, %x, %z, %x by %a, %a, %a, %a : (!ct, !ct, !ct, !ct, !pt, !pt, !pt, !pt) -> !ct
    scf.yield %s : !ct
  }
  func.return %y : !ct
}

// How often these run may differ between ranks; a sum that others use too is not part of another.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT:   dist.
func.func @left_alone(%x: !ct, %a: !pt, %go: i1) -> (!ct, !ct, !ct) {
  %y = scf.if %go -> (!ct) {
    %s = ckks.weighted_sum %x, %x, %x, %x by %a, %a, %a, %a : (!ct, !ct, !ct, !ct, !pt, !pt, !pt, !pt) -> !ct
    %c = func.call @called(%s) : (!ct) -> !ct
    scf.yield %c : !ct
  } else {
    scf.yield %x : !ct
  }
  %t = ckks.add %x, %x : !ct
  %u = ckks.add %t, %x : !ct
  %v = ckks.add %u, %x : !ct
  func.return %y, %u, %v : !ct, !ct, !ct
}
// CHECK:       func.func private @called
// CHECK-NOT:   dist.
func.func private @called(%x: !ct) -> !ct {
  %t = ckks.add %x, %x : !ct
  %u = ckks.add %t, %x : !ct
  %v = ckks.add %u, %x : !ct
  func.return %v : !ct
}

// A loop whose condition is the same on all ranks.
// CHECK-LABEL: func.func @while
// CHECK:       } do {
// CHECK:         dist.all_reduce_add_ciphertext
func.func @while(%x: !ct, %n: index) -> !ct {
  %world = fhelium.resource @pair : !dist.group
  %most = dist.broadcast %n from 0 in %world : index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end, %y = scf.while (%i = %zero, %z = %x) : (index, !ct) -> (index, !ct) {
    %go = arith.cmpi slt, %i, %most : index
    scf.condition(%go) %i, %z : index, !ct
  } do {
  ^bb0(%i: index, %z: !ct):
    %next = arith.addi %i, %one : index
    %a = ckks.add %z, %x : !ct
    %b = ckks.add %a, %z : !ct
    %c = ckks.add %b, %x : !ct
    scf.yield %next, %c : index, !ct
  }
  func.return %y : !ct
}

// Terms that differ between ranks, by their number or since each got its own, are no shares of one
// sum. Neither are those of a function that one of two calls gives such a value.
// CHECK-LABEL: func.func @terms_of_each_rank
// CHECK-NOT:   dist.all_reduce_add_ciphertext
// CHECK:       func.return
func.func @terms_of_each_rank(%x: !ct, %y: !ct, %p: !pt, %go: i1) -> (!ct, !ct, !ct) {
  %world = fhelium.resource @pair : !dist.group
  %rank = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %rank, %zero : index
  %mine = arith.select %first, %x, %y : !ct
  %a = ckks.add %mine, %x : !ct
  %b = ckks.add %a, %mine : !ct
  %c = ckks.add %b, %x : !ct
  %got = dist.scatter %x from 0 along 0 in %world : !ct -> !ct
  %n = ckks.negate %got : !ct
  %w = ckks.weighted_sum %n, %n, %n, %n by %p, %p, %p, %p : (!ct, !ct, !ct, !ct, !pt, !pt, !pt, !pt) -> !ct
  %d = func.call @with_both(%x) : (!ct) -> !ct
  %e = func.call @with_both(%mine) : (!ct) -> !ct
  func.return %c, %w, %e : !ct, !ct, !ct
}
// CHECK:       func.func private @with_both
// CHECK-NOT:   dist.all_reduce_add_ciphertext
// CHECK:       func.return
func.func private @with_both(%x: !ct) -> !ct {
  %t = ckks.add %x, %x : !ct
  %u = ckks.add %t, %x : !ct
  %v = ckks.add %u, %x : !ct
  func.return %v : !ct
}

// What ranks agreed on is the same on all of them again.
// CHECK-LABEL: func.func @terms_made_equal
// CHECK:       dist.all_reduce_add_ciphertext
// CHECK:       func.return
func.func @terms_made_equal(%x: !ct, %y: !ct) -> !ct {
  %world = fhelium.resource @pair : !dist.group
  %rank = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %rank, %zero : index
  %mine = arith.select %first, %x, %y : !ct
  %all = dist.broadcast %mine from 0 in %world : !ct
  %a = ckks.add %all, %x : !ct
  %b = ckks.add %a, %all : !ct
  %c = ckks.add %b, %x : !ct
  func.return %c : !ct
}

// What stands in front of a checkpoint is not computed again behind it: a sum that it saves is one
// term.
// CHECK-LABEL: func.func @main
// CHECK:       ckks.negate %x
// CHECK-NEXT:  ckks.rotate %x by 1
// CHECK-NEXT:  fhelium.checkpoint "half"
// CHECK:       scf.if
// CHECK-NEXT:    ckks.add
// CHECK:       %y = dist.all_reduce_add_ciphertext
// CHECK:       scf.if
// CHECK:       %e = dist.all_reduce_add_ciphertext
// CHECK-NEXT:  fhelium.checkpoint "sum"
// CHECK-NEXT:  %f = ckks.add %e, %x
// CHECK-NEXT:  %g = ckks.sub %f, %a
// CHECK-NEXT:  fhelium.checkpoint "two terms more"
// CHECK-NEXT:  %h = ckks.weighted_sum %x, %x, %x by
// CHECK-NEXT:  fhelium.checkpoint "products"
// CHECK-NEXT:  %i = ckks.add %h, %x
// CHECK-NEXT:  %j = ckks.add %i, %g
// CHECK-NEXT:  func.return %j
func.func @main(%x: !ct, %p: !pt) -> !ct {
  %k1 = fhelium.resource @rotation_1 : !k1
  %a = ckks.negate %x : !ct
  %b = ckks.rotate %x by 1 with %k1 : !ct, !k1
  fhelium.checkpoint "half"
  %t = ckks.add %a, %b : !ct
  %u = ckks.add %t, %x : !ct
  %y = ckks.add %u, %x : !ct
  %c = ckks.add %y, %y : !ct
  %d = ckks.add %c, %x : !ct
  %e = ckks.add %d, %y : !ct
  fhelium.checkpoint "sum"
  %f = ckks.add %e, %x : !ct
  %g = ckks.sub %f, %a : !ct
  fhelium.checkpoint "two terms more"
  %h = ckks.weighted_sum %x, %x, %x by %p, %p, %p : (!ct, !ct, !ct, !pt, !pt, !pt) -> !ct
  fhelium.checkpoint "products"
  %i = ckks.add %h, %x : !ct
  %j = ckks.add %i, %g : !ct
  func.return %j : !ct
}
