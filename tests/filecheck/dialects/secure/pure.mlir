// RUN: %opt %s -p cse | filecheck %s --check-prefix=CSE
// RUN: %opt %s -p dce | filecheck %s --check-prefix=DCE

// All ops are pure: equal ones merge, and unused ones go.

// CSE-LABEL: func.func @equal
// CSE-NEXT:  %a0 = secure.add
// CSE-NEXT:  %b0 = secure.sub
// CSE-NEXT:  %c0 = secure.mul
// CSE-NEXT:  %d0 = secure.negate
// CSE-NEXT:  %e0 = secure.rotate
// CSE-NEXT:  %f0 = secure.polynomial
// CSE-NEXT:  %g0 = secure.sum
// CSE-NEXT:  %h0 = secure.matvec
// CSE-NEXT:  %i0 = secure.conv2d
// CSE-NEXT:  %j0 = secure.reshape
// CSE-NEXT:  func.return %a0, %a0, %b0, %b0
func.func @equal(%x: !secure.tensor<4>, %y: !secure.tensor<4>, %image: !secure.tensor<1x4x4>, %w: tensor<3x4xf64>, %k: tensor<2x1x3x3xf64>)
    -> (!secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<1>, !secure.tensor<1>, !secure.tensor<3>, !secure.tensor<3>, !secure.tensor<2x2x2>, !secure.tensor<2x2x2>, !secure.tensor<2x2>, !secure.tensor<2x2>) {
  %a0 = secure.add %x, %y : !secure.tensor<4>, !secure.tensor<4>
  %a1 = secure.add %x, %y : !secure.tensor<4>, !secure.tensor<4>
  %b0 = secure.sub %x, %y : !secure.tensor<4>, !secure.tensor<4>
  %b1 = secure.sub %x, %y : !secure.tensor<4>, !secure.tensor<4>
  %c0 = secure.mul %x, %y : !secure.tensor<4>, !secure.tensor<4>
  %c1 = secure.mul %x, %y : !secure.tensor<4>, !secure.tensor<4>
  %d0 = secure.negate %x : !secure.tensor<4>
  %d1 = secure.negate %x : !secure.tensor<4>
  %e0 = secure.rotate %x by 1 : !secure.tensor<4>
  %e1 = secure.rotate %x by 1 : !secure.tensor<4>
  %f0 = secure.polynomial %x, [0.0, 1.0, 1.0] in monomial : !secure.tensor<4>
  %f1 = secure.polynomial %x, [0.0, 1.0, 1.0] in monomial : !secure.tensor<4>
  %g0 = secure.sum %x : !secure.tensor<4> -> !secure.tensor<1>
  %g1 = secure.sum %x : !secure.tensor<4> -> !secure.tensor<1>
  %h0 = secure.matvec %w, %x : tensor<3x4xf64>, !secure.tensor<4> -> !secure.tensor<3>
  %h1 = secure.matvec %w, %x : tensor<3x4xf64>, !secure.tensor<4> -> !secure.tensor<3>
  %i0 = secure.conv2d %k, %image : tensor<2x1x3x3xf64>, !secure.tensor<1x4x4> -> !secure.tensor<2x2x2>
  %i1 = secure.conv2d %k, %image : tensor<2x1x3x3xf64>, !secure.tensor<1x4x4> -> !secure.tensor<2x2x2>
  %j0 = secure.reshape %x : !secure.tensor<4> -> !secure.tensor<2x2>
  %j1 = secure.reshape %x : !secure.tensor<4> -> !secure.tensor<2x2>
  func.return %a0, %a1, %b0, %b1, %c0, %c1, %d0, %d1, %e0, %e1, %f0, %f1, %g0, %g1, %h0, %h1, %i0, %i1, %j0, %j1 : !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<1>, !secure.tensor<1>, !secure.tensor<3>, !secure.tensor<3>, !secure.tensor<2x2x2>, !secure.tensor<2x2x2>, !secure.tensor<2x2>, !secure.tensor<2x2>
}

// DCE-LABEL: func.func @unused
// DCE-NEXT:  func.return
func.func @unused(%x: !secure.tensor<4>, %y: !secure.tensor<4>, %image: !secure.tensor<1x4x4>, %w: tensor<3x4xf64>, %k: tensor<2x1x3x3xf64>) {
  %a0 = secure.add %x, %y : !secure.tensor<4>, !secure.tensor<4>
  %b0 = secure.sub %x, %y : !secure.tensor<4>, !secure.tensor<4>
  %c0 = secure.mul %x, %y : !secure.tensor<4>, !secure.tensor<4>
  %d0 = secure.negate %x : !secure.tensor<4>
  %e0 = secure.rotate %x by 1 : !secure.tensor<4>
  %f0 = secure.polynomial %x, [0.0, 1.0, 1.0] in monomial : !secure.tensor<4>
  %g0 = secure.sum %x : !secure.tensor<4> -> !secure.tensor<1>
  %h0 = secure.matvec %w, %x : tensor<3x4xf64>, !secure.tensor<4> -> !secure.tensor<3>
  %i0 = secure.conv2d %k, %image : tensor<2x1x3x3xf64>, !secure.tensor<1x4x4> -> !secure.tensor<2x2x2>
  %j0 = secure.reshape %x : !secure.tensor<4> -> !secure.tensor<2x2>
  func.return
}
