// RUN: %roundtrip
// RUN: %generic-roundtrip
// RUN: %opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!poly = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>

// CHECK-LABEL:  func.func @queries
// GENERIC:      "func.func"() <{sym_name = "queries"
func.func @queries(%group: !dist.group) {
  // CHECK-NEXT:   %rank = dist.rank %group
  // GENERIC:      %rank = "dist.rank"(%group) : (!dist.group) -> index
  %rank = dist.rank %group

  // CHECK-NEXT:   %of_two = dist.rank %group of 2
  // GENERIC-NEXT: %of_two = "dist.rank"(%group) <{size = 2 : i64}> : (!dist.group) -> index
  %of_two = dist.rank %group of 2

  // CHECK-NEXT:   %size = dist.group_size %group {fhelium.implementation = "mine"}
  // GENERIC-NEXT: %size = "dist.group_size"(%group) {fhelium.implementation = "mine"} : (!dist.group) -> index
  %size = dist.group_size %group {fhelium.implementation = "mine"}
  func.return
}

// CHECK-LABEL:  func.func @collectives
// GENERIC:      "func.func"() <{sym_name = "collectives"
func.func @collectives(%x: tensor<2xi64>, %ct: !ct, %poly: !poly, %group: !dist.group) {
  // CHECK-NEXT:   %a = dist.broadcast %x from 1 in %group : tensor<2xi64>
  // GENERIC:      %a = "dist.broadcast"(%x, %group) <{root = 1 : i64}> : (tensor<2xi64>, !dist.group) -> tensor<2xi64>
  %a = dist.broadcast %x from 1 in %group : tensor<2xi64>

  // CHECK-NEXT:   %b = dist.broadcast %ct from 0 in %group {fhelium.in_place} : !ct_L1_s6
  // GENERIC-NEXT: %b = "dist.broadcast"(%ct, %group) <{root = 0 : i64}> {fhelium.in_place} : (!ct_L1_s6, !dist.group) -> !ct_L1_s6
  %b = dist.broadcast %ct from 0 in %group {fhelium.in_place} : !ct

  // CHECK-NEXT:   %c = dist.all_reduce_add_ciphertext %ct in %group : !ct_L1_s6
  // GENERIC-NEXT: %c = "dist.all_reduce_add_ciphertext"(%ct, %group) : (!ct_L1_s6, !dist.group) -> !ct_L1_s6
  %c = dist.all_reduce_add_ciphertext %ct in %group : !ct

  // CHECK-NEXT:   %q = rns.moduli : !rns.moduli<Q[0:2]>
  // CHECK-NEXT:   %d = dist.all_reduce_add_ciphertext %poly in %group mod %q {note} : !poly2_Q0to2, !rns.moduli<Q[0:2]>
  // GENERIC:      %d = "dist.all_reduce_add_ciphertext"(%poly, %q, %group) {note} : (!poly2_Q0to2, !rns.moduli<Q[0:2]>, !dist.group) -> !poly2_Q0to2
  %q = rns.moduli : !rns.moduli<Q[0:2]>
  %d = dist.all_reduce_add_ciphertext %poly in %group mod %q {note} : !poly, !rns.moduli<Q[0:2]>

  // CHECK-NEXT:   %e = dist.all_reduce %ct in %group : !ct_L1_s6 combine {
  // CHECK-NEXT:   ^bb0(%l: !ct_L1_s6, %r: !ct_L1_s6):
  // CHECK-NEXT:     %s = ckks.add %l, %r : !ct_L1_s6
  // CHECK-NEXT:     dist.yield %s : !ct_L1_s6
  // CHECK-NEXT:   }
  // GENERIC:      %e = "dist.all_reduce"(%ct, %group) ({
  // GENERIC-NEXT: ^bb0(%l: !ct_L1_s6, %r: !ct_L1_s6):
  // GENERIC-NEXT:   %s = "ckks.add"(%l, %r) : (!ct_L1_s6, !ct_L1_s6) -> !ct_L1_s6
  // GENERIC-NEXT:   "dist.yield"(%s) : (!ct_L1_s6) -> ()
  // GENERIC-NEXT: }) : (!ct_L1_s6, !dist.group) -> !ct_L1_s6
  %e = dist.all_reduce %ct in %group : !ct combine {
  ^bb0(%l: !ct, %r: !ct):
    %s = ckks.add %l, %r : !ct
    dist.yield %s : !ct
  }

  // CHECK-NEXT:   %f = dist.all_reduce %x in %group attributes {fhelium.implementation = "mine"} : tensor<2xi64> combine {
  // CHECK-NEXT:   ^bb0(%v: tensor<2xi64>, %w: tensor<2xi64>):
  // CHECK-NEXT:     dist.yield %v : tensor<2xi64>
  // CHECK-NEXT:   }
  %f = dist.all_reduce %x in %group attributes {fhelium.implementation = "mine"} : tensor<2xi64> combine {
  ^bb0(%v: tensor<2xi64>, %w: tensor<2xi64>):
    dist.yield %v : tensor<2xi64>
  }

  // A region may hold pure control flow.
  // CHECK:        scf.if
  %condition = arith.constant true
  %g = dist.all_reduce %ct in %group : !ct combine {
  ^bb0(%l: !ct, %r: !ct):
    %s = scf.if %condition -> (!ct) {
      %sum = ckks.add %l, %r : !ct
      scf.yield %sum : !ct
    } else {
      scf.yield %l : !ct
    }
    dist.yield %s : !ct
  }
  func.return
}
