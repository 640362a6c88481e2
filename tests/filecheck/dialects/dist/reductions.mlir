// RUN: %roundtrip
// RUN: %generic-roundtrip
// RUN: %opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

!poly = !rns.poly<basis = Q[0:4], components = 2, form = evaluation>
!low = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>

// CHECK-LABEL:  func.func @to_one_rank
// GENERIC:      "func.func"() <{sym_name = "to_one_rank"
func.func @to_one_rank(%x: tensor<4xi64>, %group: !dist.group) {
  // CHECK-NEXT:   %a = dist.reduce %x to 1 in %group : tensor<4xi64> combine {
  // CHECK-NEXT:   ^bb0(%l: tensor<4xi64>, %r: tensor<4xi64>):
  // CHECK-NEXT:     dist.yield %r : tensor<4xi64>
  // CHECK-NEXT:   }
  // GENERIC:      %a = "dist.reduce"(%x, %group) <{root = 1 : i64}> ({
  // GENERIC:      }) : (tensor<4xi64>, !dist.group) -> tensor<4xi64>
  %a = dist.reduce %x to 1 in %group : tensor<4xi64> combine {
  ^bb0(%l: tensor<4xi64>, %r: tensor<4xi64>):
    dist.yield %r : tensor<4xi64>
  }

  // CHECK-NEXT:   %b = dist.reduce %x to 0 in %group attributes {note} : tensor<4xi64> combine {
  %b = dist.reduce %x to 0 in %group attributes {note} : tensor<4xi64> combine {
  ^bb0(%l: tensor<4xi64>, %r: tensor<4xi64>):
    dist.yield %r : tensor<4xi64>
  }
  func.return
}

// The region combines shares.
// CHECK-LABEL:  func.func @shares
// GENERIC:      "func.func"() <{sym_name = "shares"
func.func @shares(%x: tensor<4xi64>, %poly: !poly, %group: !dist.group) {
  // CHECK-NEXT:   %a = dist.reduce_scatter %x along 0 in %group : tensor<4xi64> -> tensor<2xi64> combine {
  // CHECK-NEXT:   ^bb0(%l: tensor<2xi64>, %r: tensor<2xi64>):
  // CHECK-NEXT:     dist.yield %r : tensor<2xi64>
  // CHECK-NEXT:   }
  // GENERIC:      %a = "dist.reduce_scatter"(%x, %group) <{axis = 0 : i64}> ({
  // GENERIC:      }) : (tensor<4xi64>, !dist.group) -> tensor<2xi64>
  %a = dist.reduce_scatter %x along 0 in %group : tensor<4xi64> -> tensor<2xi64> combine {
  ^bb0(%l: tensor<2xi64>, %r: tensor<2xi64>):
    dist.yield %r : tensor<2xi64>
  }

  // CHECK-NEXT:   %b = dist.reduce_scatter %poly along limbs in %group attributes {note} : !poly2_Q0to4 -> !poly2_Q0to2 combine {
  %b = dist.reduce_scatter %poly along limbs in %group attributes {note} : !poly -> !low combine {
  ^bb0(%l: !low, %r: !low):
    dist.yield %r : !low
  }
  func.return
}
