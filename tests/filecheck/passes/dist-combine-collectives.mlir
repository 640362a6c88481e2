// RUN: %opt %s -p dist-combine-collectives | filecheck %s
// RUN: %opt %s -p dist-combine-collectives,dist-verify-spmd | filecheck %s
// RUN: %opt %s -p dist-combine-collectives --print-debuginfo | filecheck %s --check-prefix=PLACE

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 0, scale = 2^6, components = 3, form = evaluation>
!poly = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>

// Three sums of two kinds become one message; a fourth needs their result.
// CHECK-LABEL: func.func @independent
// CHECK-NEXT:    %y = ckks.negate %x
// CHECK-NEXT:    %k = ckks.add %x, %x
// CHECK-NEXT:    %s, %t, %w = dist.all_reduce_add_ciphertexts %y, %k, %v in %group : !ct_L1_s6, !ct_L1_s6, !ct3_L0_s6
// CHECK-NEXT:    %a = ckks.add %s, %y
// CHECK-NEXT:    %b = ckks.add %t, %a
// CHECK-NEXT:    %c = dist.all_reduce_add_ciphertext %b in %group
// CHECK-NEXT:    func.return %b, %c, %w
// PLACE:         dist.all_reduce_add_ciphertexts {{.*}} loc("{{.*}}collectives.mlir":21:8)
func.func @independent(%x: !ct, %v: !ct3, %group: !dist.group) -> (!ct, !ct, !ct3) {
  %y = ckks.negate %x : !ct
  %s = dist.all_reduce_add_ciphertext %y in %group : !ct
  %a = ckks.add %s, %y : !ct
  %k = ckks.add %x, %x : !ct
  %t = dist.all_reduce_add_ciphertext %k in %group : !ct
  %w = dist.all_reduce_add_ciphertext %v in %group : !ct3
  %b = ckks.add %t, %a : !ct
  %c = dist.all_reduce_add_ciphertext %b in %group : !ct
  func.return %b, %c, %w : !ct, !ct, !ct3
}

// Residues bring their moduli.
// CHECK-LABEL: func.func @residues
// CHECK-NEXT:    %q = rns.moduli
// CHECK-NEXT:    %p = rns.moduli
// CHECK-NEXT:    %s, %t = dist.all_reduce_add_ciphertexts %x, %y in %group mod %q, %p : !poly2_Q0to2, !poly2_Q0to2 mod !rns.moduli<Q[0:2]>, !rns.moduli<Q[0:2]>
func.func @residues(%x: !poly, %y: !poly, %group: !dist.group) -> (!poly, !poly) {
  %q = rns.moduli : !rns.moduli<Q[0:2]>
  %s = dist.all_reduce_add_ciphertext %x in %group mod %q : !poly, !rns.moduli<Q[0:2]>
  %p = rns.moduli : !rns.moduli<Q[0:2]>
  %t = dist.all_reduce_add_ciphertext %y in %group mod %p : !poly, !rns.moduli<Q[0:2]>
  func.return %s, %t : !poly, !poly
}

// Left alone: a path between them, another collective between them, another group, an assignment,
// and an op that has an effect.
// CHECK-LABEL: func.func @others
// CHECK-NOT:     dist.all_reduce_add_ciphertexts
// CHECK:         func.return
func.func @others(%x: !ct, %y: !ct, %group: !dist.group, %other: !dist.group) -> !ct {
  %a = dist.all_reduce_add_ciphertext %x in %group : !ct
  %n = ckks.add %a, %y : !ct
  %b = dist.all_reduce_add_ciphertext %n in %group : !ct
  %c = dist.broadcast %y from 0 in %group : !ct
  %d = dist.all_reduce_add_ciphertext %y in %group : !ct
  %e = dist.all_reduce_add_ciphertext %y in %other : !ct
  %f = dist.all_reduce_add_ciphertext %x in %other {fhelium.implementation = "mine"} : !ct
  %g = dist.all_reduce_add_ciphertext %x in %other : !ct
  dist.barrier in %group
  %h = dist.all_reduce_add_ciphertext %y in %other : !ct
  func.return %h : !ct
}

// Pure ops stand in the way of nothing, of which xDSL knows that or not.
// CHECK-LABEL: func.func @remainder
// CHECK-NEXT:    %a, %b = dist.all_reduce_add_ciphertexts %x, %y in %group
func.func @remainder(%x: !ct, %y: !ct, %n: index, %group: !dist.group) -> (!ct, !ct, index) {
  %a = dist.all_reduce_add_ciphertext %x in %group : !ct
  %rest = arith.remui %n, %n : index
  %b = dist.all_reduce_add_ciphertext %y in %group : !ct
  func.return %a, %b, %rest : !ct, !ct, index
}

// Ranks in the two branches issue one sequence, whatever else each computes: it stays.
// CHECK-LABEL: func.func @each_its_branch
// CHECK-NOT:     dist.all_reduce_add_ciphertexts
// CHECK:         func.return
func.func @each_its_branch(%x: !ct, %y: !ct, %mine: i1) -> !ct {
  %world = fhelium.resource @world : !dist.group
  %rank = dist.rank %world
  %from = arith.constant 0 : index
  %to = arith.constant 3 : index
  %first = arith.cmpi eq, %rank, %from : index
  %r = scf.if %first -> (!ct) {
    %a = dist.all_reduce_add_ciphertext %x in %world : !ct
    %b = dist.all_reduce_add_ciphertext %y in %world : !ct
    %c = ckks.add %a, %b : !ct
    scf.yield %c : !ct
  } else {
    %a = dist.all_reduce_add_ciphertext %x in %world : !ct
    %n = ckks.negate %a : !ct
    %b = dist.all_reduce_add_ciphertext %n in %world : !ct
    scf.yield %b : !ct
  }
  // In loops of branches too, and under a condition that is an argument of each rank.
  %s = scf.if %mine -> (!ct) {
    %l = scf.for %i = %from to %to step %to iter_args(%z = %x) -> (!ct) {
      %a = dist.all_reduce_add_ciphertext %z in %world : !ct
      %b = dist.all_reduce_add_ciphertext %y in %world : !ct
      %c = ckks.add %a, %b : !ct
      scf.yield %c : !ct
    }
    scf.yield %l : !ct
  } else {
    %l = scf.for %i = %from to %to step %to iter_args(%z = %x) -> (!ct) {
      %a = dist.all_reduce_add_ciphertext %z in %world : !ct
      %b = dist.all_reduce_add_ciphertext %a in %world : !ct
      scf.yield %b : !ct
    }
    scf.yield %l : !ct
  }
  %t = ckks.add %r, %s : !ct
  func.return %t : !ct
}

// Where all ranks of the group go one way there is no other branch: by what they agreed on, in the
// part of their color, or for as many turns.
// CHECK-LABEL: func.func @one_way
// CHECK-COUNT-4: dist.all_reduce_add_ciphertexts
// CHECK:         func.return
func.func @one_way(%x: !ct, %y: !ct) -> !ct {
  %world = fhelium.resource @world : !dist.group
  %rank = dist.rank %world
  %from = arith.constant 0 : index
  %one = arith.constant 1 : index
  %to = arith.constant 3 : index
  %color = arith.andi %rank, %one : index
  %part = dist.split %world by %color, %rank
  %odd = arith.cmpi eq, %color, %one : index
  %root = dist.broadcast %odd from 0 in %world : i1
  scf.if %root {
    %a = dist.all_reduce_add_ciphertext %x in %world : !ct
    %b = dist.all_reduce_add_ciphertext %y in %world : !ct
  }
  scf.if %odd {
    %a = dist.all_reduce_add_ciphertext %x in %part : !ct
    %b = dist.all_reduce_add_ciphertext %y in %part : !ct
  }
  %s = scf.for %i = %from to %to step %one iter_args(%z = %x) -> (!ct) {
    %a = dist.all_reduce_add_ciphertext %z in %world : !ct
    %b = dist.all_reduce_add_ciphertext %y in %world : !ct
    %c = ckks.add %a, %b : !ct
    scf.yield %c : !ct
  }
  %end, %w = scf.while (%i = %from, %z = %s) : (index, !ct) -> (index, !ct) {
    %go = arith.cmpi slt, %i, %to : index
    scf.condition(%go) %i, %z : index, !ct
  } do {
  ^bb0(%i: index, %z: !ct):
    %next = arith.addi %i, %one : index
    %a = dist.all_reduce_add_ciphertext %z in %world : !ct
    %b = dist.all_reduce_add_ciphertext %y in %world : !ct
    %c = ckks.add %a, %b : !ct
    scf.yield %next, %c : index, !ct
  }
  func.return %w : !ct
}
