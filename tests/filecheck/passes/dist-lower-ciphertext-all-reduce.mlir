// RUN: %opt %s -p dist-lower-ciphertext-all-reduce | filecheck %s
// RUN: %opt %s -p dist-lower-ciphertext-all-reduce --print-debuginfo | filecheck %s --check-prefix=PLACE

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 0, scale = 2^6, components = 3, form = evaluation>
!poly = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>

// CHECK-LABEL: func.func @ciphertext
// CHECK-NEXT:    %sum = dist.all_reduce %x in %group : !ct_L1_s6 combine {
// CHECK-NEXT:    ^{{.*}}(%0: !ct_L1_s6, %1: !ct_L1_s6):
// CHECK-NEXT:      %2 = ckks.add %0, %1 : !ct_L1_s6
// CHECK-NEXT:      dist.yield %2 : !ct_L1_s6
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %sum : !ct_L1_s6

// The new op and those in its region stand where the old one stood.
// PLACE-LABEL: func.func @ciphertext
// PLACE:           ckks.add {{.*}} loc("{{.*}}reduce.mlir":23:10)
// PLACE-NEXT:      dist.yield {{.*}} loc("{{.*}}reduce.mlir":23:10)
// PLACE-NEXT:    } loc("{{.*}}reduce.mlir":23:10)
// PLACE-NEXT:    func.return {{.*}} loc("{{.*}}reduce.mlir":24:3)
func.func @ciphertext(%x: !ct, %group: !dist.group) -> !ct {
  %sum = dist.all_reduce_add_ciphertext %x in %group : !ct
  func.return %sum : !ct
}

// At the residue level the op adds residues; the moduli are in the type of the payload.
// CHECK-LABEL: func.func @residues
// CHECK-NEXT:    %q = rns.moduli
// CHECK-NEXT:    %sum = dist.all_reduce %x in %group : !poly2_Q0to2 combine {
// CHECK-NEXT:    ^{{.*}}(%0: !poly2_Q0to2, %1: !poly2_Q0to2):
// CHECK-NEXT:      %2 = rns.add %0, %1 : (!poly2_Q0to2, !poly2_Q0to2) -> !poly2_Q0to2
// CHECK-NEXT:      dist.yield %2
func.func @residues(%x: !poly, %group: !dist.group) -> !poly {
  %q = rns.moduli : !rns.moduli<Q[0:2]>
  %sum = dist.all_reduce_add_ciphertext %x in %group mod %q : !poly, !rns.moduli<Q[0:2]>
  func.return %sum : !poly
}

// Ciphertexts without state lower too; other attributes stay.
// CHECK-LABEL: func.func @attributes
// CHECK-NEXT:    %sum = dist.all_reduce %x in %group attributes {fhelium.in_place, note = "kept"} : !ct combine {
func.func @attributes(%x: !ckks.ciphertext, %group: !dist.group) -> !ckks.ciphertext {
  %sum = dist.all_reduce_add_ciphertext %x in %group {fhelium.in_place, note = "kept"} : !ckks.ciphertext
  func.return %sum : !ckks.ciphertext
}

// CHECK-LABEL: func.func @in_control_flow
// CHECK:         scf.for
// CHECK-NEXT:      dist.all_reduce %partial in %group : !ct_L1_s6 combine {
func.func @in_control_flow(%x: !ct, %group: !dist.group, %from: index, %to: index) -> !ct {
  %r = scf.for %i = %from to %to step %to iter_args(%partial = %x) -> (!ct) {
    %sum = dist.all_reduce_add_ciphertext %partial in %group : !ct
    scf.yield %sum : !ct
  }
  func.return %r : !ct
}

// Several in one message become one each, in their order.
// CHECK-LABEL: func.func @several
// CHECK-NEXT:    %a = dist.all_reduce %x in %group attributes {note = "kept"} : !ct_L1_s6 combine {
// CHECK:           ckks.add
// CHECK:         %b = dist.all_reduce %y in %group attributes {note = "kept"} : !ct3_L0_s6 combine {
// CHECK:           ckks.add {{.*}} : !ct3_L0_s6
// CHECK:         %q = rns.moduli
// CHECK-NEXT:    %c = dist.all_reduce %p in %group : !poly2_Q0to2 combine {
// CHECK:           rns.add
// CHECK:         %d = dist.all_reduce %p in %group : !poly2_Q0to2 combine {
// CHECK:         func.return %b, %a, %d, %c
// PLACE-LABEL: func.func @several
// PLACE:         } loc("{{.*}}reduce.mlir":[[# @LINE + 3]]:12)
// PLACE:         } loc("{{.*}}reduce.mlir":[[# @LINE + 2]]:12)
func.func @several(%x: !ct, %y: !ct3, %p: !poly, %group: !dist.group) -> (!ct3, !ct, !poly, !poly) {
  %a, %b = dist.all_reduce_add_ciphertexts %x, %y in %group {note = "kept"} : !ct, !ct3
  %q = rns.moduli : !rns.moduli<Q[0:2]>
  %c, %d = dist.all_reduce_add_ciphertexts %p, %p in %group mod %q, %q : !poly, !poly mod !rns.moduli<Q[0:2]>, !rns.moduli<Q[0:2]>
  func.return %b, %a, %d, %c : !ct3, !ct, !poly, !poly
}

// Everything else is left alone: also generic all-reduces, whatever they record.
// CHECK-LABEL: func.func @others
// CHECK-NEXT:    %a = dist.broadcast %x from 0 in %group : !ct_L1_s6
// CHECK-NEXT:    %b = ckks.add %a, %a {fhelium.implementation = "mine"} : !ct_L1_s6
// CHECK-NEXT:    %c = dist.all_reduce %b in %group attributes {fhelium.implementation = "mine"} : !ct_L1_s6 combine {
// CHECK-NEXT:    ^{{.*}}(%l: !ct_L1_s6, %r: !ct_L1_s6):
// CHECK-NEXT:      dist.yield %l : !ct_L1_s6
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %c
func.func @others(%x: !ct, %group: !dist.group) -> !ct {
  %a = dist.broadcast %x from 0 in %group : !ct
  %b = ckks.add %a, %a {fhelium.implementation = "mine"} : !ct
  %c = dist.all_reduce %b in %group attributes {fhelium.implementation = "mine"} : !ct combine {
  ^bb0(%l: !ct, %r: !ct):
    dist.yield %l : !ct
  }
  func.return %c : !ct
}
