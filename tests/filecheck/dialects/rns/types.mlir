// RUN: %opt %s --no-aliases | filecheck %s
// RUN: %opt %s --no-aliases | %opt --no-aliases | filecheck %s
// RUN: %opt %s --no-aliases --print-op-generic | filecheck %s
// RUN: %opt %s | filecheck %s --check-prefix=ALIAS

// A basis is a list of limbs of Q, of P or of both; runs of two and more print as a range.

"test.op"() {
  // CHECK:      one = #rns.basis<Q[0]>,
  one = #rns.basis<Q[0:1]>,
  // CHECK-SAME: range = #rns.basis<Q[0:4]>,
  range = #rns.basis<Q[0, 1, 2, 3]>,
  // CHECK-SAME: list = #rns.basis<Q[0:2, 3, 5:7]>,
  list = #rns.basis<Q[0, 1, 3, 5, 6]>,
  // CHECK-SAME: joined = #rns.basis<Q[2:6]>,
  joined = #rns.basis<Q[2:4, 4:6]>,
  // CHECK-SAME: special = #rns.basis<P[0:2]>,
  special = #rns.basis<P[0:2]>,
  // CHECK-SAME: both = #rns.basis<Q[0:4] P[1]>,
  both = #rns.basis<Q[0:4] P[1]>,
  // CHECK-SAME: form = #rns<form coefficient>}
  form = #rns<form coefficient>
} : () -> ()

// CHECK: (!rns.poly<basis = Q[0:4] P[0:2], components = 2, form = evaluation>, !rns.poly<basis = P[0], components = 1, form = coefficient>, !rns.moduli<Q[0:4, 6]>) -> ()
// ALIAS: !poly2_Q0to4_P0to2 = !rns.poly<basis = Q[0:4] P[0:2], components = 2, form = evaluation>
// ALIAS: !poly1_P0_coeff = !rns.poly<basis = P[0], components = 1, form = coefficient>
// ALIAS: (!poly2_Q0to4_P0to2, !poly1_P0_coeff, !rns.moduli<Q[0:4, 6]>) -> ()
%p, %q, %m = "test.op"() : () -> (!rns.poly<form = evaluation, components = 2, basis = Q[0:4] P[0:2]>, !rns.poly<basis = P[0], components = 1, form = coefficient>, !rns.moduli<Q[0:4, 6]>)
"test.op"(%p, %q, %m) : (!rns.poly<form = evaluation, components = 2, basis = Q[0:4] P[0:2]>, !rns.poly<basis = P[0], components = 1, form = coefficient>, !rns.moduli<Q[0:4, 6]>) -> ()
