// RUN: %roundtrip
// RUN: %generic-roundtrip
// RUN: %opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!poly = !rns.poly<basis = Q[0:4], components = 2, form = evaluation>
!low = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>

// CHECK-LABEL:  func.func @batches
// GENERIC:      "func.func"() <{sym_name = "batches"
func.func @batches(%x: tensor<2x?xi64>, %ct: !ct, %poly: !poly, %group: !dist.group) {
  // CHECK-NEXT:   %a = dist.all_gather %ct along 0 in %group : !ct_L1_s6 -> !ct_L1_s6
  // GENERIC:      %a = "dist.all_gather"(%ct, %group) <{axis = 0 : i64}> : (!ct_L1_s6, !dist.group) -> !ct_L1_s6
  %a = dist.all_gather %ct along 0 in %group : !ct -> !ct

  // CHECK-NEXT:   %b = dist.all_gather %x along 0 in %group {note} : tensor<2x?xi64> -> tensor<8x?xi64>
  // GENERIC-NEXT: %b = "dist.all_gather"(%x, %group) <{axis = 0 : i64}> {note} : (tensor<2x?xi64>, !dist.group) -> tensor<8x?xi64>
  %b = dist.all_gather %x along 0 in %group {note} : tensor<2x?xi64> -> tensor<8x?xi64>

  // CHECK-NEXT:   %c = dist.gather %x to 1 along 1 in %group : tensor<2x?xi64> -> tensor<2x?xi64>
  // GENERIC-NEXT: %c = "dist.gather"(%x, %group) <{root = 1 : i64, axis = 1 : i64}> : (tensor<2x?xi64>, !dist.group) -> tensor<2x?xi64>
  %c = dist.gather %x to 1 along 1 in %group : tensor<2x?xi64> -> tensor<2x?xi64>

  // CHECK-NEXT:   %d = dist.scatter %x from 2 along 0 in %group : tensor<2x?xi64> -> tensor<1x?xi64>
  // GENERIC-NEXT: %d = "dist.scatter"(%x, %group) <{root = 2 : i64, axis = 0 : i64}> : (tensor<2x?xi64>, !dist.group) -> tensor<1x?xi64>
  %d = dist.scatter %x from 2 along 0 in %group : tensor<2x?xi64> -> tensor<1x?xi64>

  // CHECK-NEXT:   %e = dist.all_to_all %x along 0 in %group : tensor<2x?xi64> -> tensor<?x?xi64>
  // GENERIC-NEXT: %e = "dist.all_to_all"(%x, %group) <{axis = 0 : i64}> : (tensor<2x?xi64>, !dist.group) -> tensor<?x?xi64>
  %e = dist.all_to_all %x along 0 in %group : tensor<2x?xi64> -> tensor<?x?xi64>

  // CHECK-NEXT:   %f = dist.all_to_all %poly along 0 in %group : !poly2_Q0to4 -> !poly2_Q0to4
  %f = dist.all_to_all %poly along 0 in %group : !poly -> !poly
  func.return
}

// A share of the limbs names its own.
// CHECK-LABEL:  func.func @limbs
// GENERIC:      "func.func"() <{sym_name = "limbs"
func.func @limbs(%poly: !poly, %low: !low, %group: !dist.group) {
  // CHECK-NEXT:   %a = dist.all_gather %low along limbs in %group : !poly2_Q0to3 -> !poly2_Q0to4
  // GENERIC:      %a = "dist.all_gather"(%low, %group) <{axis = -2 : i64}>
  %a = dist.all_gather %low along limbs in %group : !low -> !poly

  // CHECK-NEXT:   %b = dist.gather %low to 0 along limbs in %group : !poly2_Q0to3 -> !poly2_Q0to4
  %b = dist.gather %low to 0 along limbs in %group : !low -> !poly

  // CHECK-NEXT:   %c = dist.scatter %poly from 0 along limbs in %group : !poly2_Q0to4 -> !poly2_Q0to3
  %c = dist.scatter %poly from 0 along limbs in %group : !poly -> !low
  func.return
}
