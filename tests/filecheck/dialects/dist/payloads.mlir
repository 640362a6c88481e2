// RUN: %roundtrip
// RUN: %opt %s | filecheck %s

// What a message can carry: numbers, tensors of what torch has, and the values of other dialects.

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!poly = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>

// CHECK-LABEL: func.func @numbers
func.func @numbers(%i: index, %b: i1, %odd: i13, %l: i64, %h: bf16, %d: f64, %group: !dist.group) {
  // CHECK-COUNT-6: dist.broadcast
  %1 = dist.broadcast %i from 0 in %group : index
  %2 = dist.broadcast %b from 0 in %group : i1
  %3 = dist.broadcast %odd from 0 in %group : i13
  %4 = dist.broadcast %l from 0 in %group : i64
  %5 = dist.broadcast %h from 0 in %group : bf16
  %6 = dist.broadcast %d from 0 in %group : f64
  func.return
}

// CHECK-LABEL: func.func @tensors
func.func @tensors(%group: !dist.group) {
  // CHECK-COUNT-8: dist.recv
  %1 = dist.recv from 0 in %group : tensor<index>
  %2 = dist.recv from 0 in %group : tensor<?xi1>
  %3 = dist.recv from 0 in %group : tensor<2xui8>
  %4 = dist.recv from 0 in %group : tensor<2xsi16>
  %5 = dist.recv from 0 in %group : tensor<2xf16>
  %6 = dist.recv from 0 in %group : tensor<2xcomplex<f64>>
  %7 = dist.recv from 0 in %group : tensor<?x!ct>
  %8 = dist.recv from 0 in %group : tensor<2x?x!poly>
  func.return
}

// CHECK-LABEL: func.func @residues
func.func @residues(%group: !dist.group) {
  // CHECK: dist.recv from 0 in %group : !ct_L1_s6
  // CHECK: dist.recv from 0 in %group : !poly2_Q0to2
  // CHECK: dist.recv from 0 in %group : !rns.moduli<Q[0:2]>
  %1 = dist.recv from 0 in %group : !ct
  %2 = dist.recv from 0 in %group : !poly
  %3 = dist.recv from 0 in %group : !rns.moduli<Q[0:2]>
  func.return
}
