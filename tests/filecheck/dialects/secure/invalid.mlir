// RUN: %opt %s --split-input-file --verify-diagnostics

// Each message of each verifier. Where the custom form makes a mismatch a parse error, the generic
// form shows what the verifier says.

!laid_out = !secure.tensor<2x3, #secure.layout<slots = 64, batch = 8, period = 8, grid = [6], strides = [1]>>
func.func @elementwise(%l: !laid_out, %x: !secure.tensor<2x3>, %y: !secure.tensor<6>, %p: tensor<3xf64>, %q: tensor<2x3xf32>, %r: tensor<?x3xf64>, %i: i32) {
  // expected-error@+1 {{'secure.add': found rhs of shape 6, expected 2x3: give both one shape, secure.reshape a secret one and broadcast a public one before}}
  %a0 = secure.add %x, %y : !secure.tensor<2x3>, !secure.tensor<6>
  // expected-error@+1 {{'secure.sub': found rhs of shape 3, expected 2x3: give both one shape}}
  %a1 = secure.sub %x, %p : !secure.tensor<2x3>, tensor<3xf64>
  // expected-error@+1 {{'secure.mul': found rhs of type tensor<2x3xf32>, expected a secret tensor, or a public one of f64 with known sizes}}
  %a2 = secure.mul %x, %q : !secure.tensor<2x3>, tensor<2x3xf32>
  // expected-error@+1 {{'secure.mul': found rhs of type tensor<?x3xf64>, expected a secret tensor, or a public one of f64 with known sizes}}
  %a3 = secure.mul %x, %r : !secure.tensor<2x3>, tensor<?x3xf64>
  // expected-error@+1 {{'secure.add': found rhs of type !secure.tensor<2x3, #secure.layout<slots = 64, batch = 8, period = 8, grid = [6], strides = [1]>>, expected !secure.tensor<2x3>: bring both to one layout}}
  %l0 = secure.add %x, %l : !secure.tensor<2x3>, !laid_out
  // expected-error@+1 {{'secure.add': operand 'lhs' at position 0 does not verify: i32 should be of base attribute secure.tensor}}
  %a4 = "secure.add"(%i, %x) : (i32, !secure.tensor<2x3>) -> !secure.tensor<2x3>
  // expected-error@+1 {{'secure.add': operand 'lhs' at position 0 does not verify: tensor<3xf64> should be of base attribute secure.tensor}}
  %a5 = "secure.add"(%p, %y) : (tensor<3xf64>, !secure.tensor<6>) -> !secure.tensor<6>
  // expected-error@+1 {{'secure.add': operand 'rhs' at position 1 does not verify}}
  %a6 = "secure.add"(%x, %i) : (!secure.tensor<2x3>, i32) -> !secure.tensor<2x3>
  // expected-error@+1 {{'secure.negate': result 'result' at position 0 does not verify}}
  %a7 = "secure.negate"(%x) : (!secure.tensor<2x3>) -> !secure.tensor<6>
  // expected-error@+1 {{'secure.rotate': found an operand of shape 2x3, expected a vector: secure.reshape it first}}
  %a8 = secure.rotate %x by 1 : !secure.tensor<2x3>
  func.return
}

// -----

func.func @polynomial(%x: !secure.tensor<4>) {
  // expected-error@+1 {{'secure.polynomial': found the coefficients [], expected finite numbers, and at least one}}
  %0 = secure.polynomial %x, [] in monomial : !secure.tensor<4>
  // expected-error@+1 {{'secure.polynomial': found no domain, expected one for the basis chebyshev and for an approximation: say `on [a, b]`}}
  %1 = secure.polynomial %x, [1.0] in chebyshev : !secure.tensor<4>
  // expected-error@+1 {{'secure.polynomial': found no domain, expected one}}
  %2 = secure.polynomial %x, [1.0] in monomial approximating "relu" within 0.5 : !secure.tensor<4>
  // expected-error@+1 {{'secure.polynomial': found the domain [1.0, 1.0], expected two finite numbers a < b}}
  %3 = secure.polynomial %x, [1.0] in chebyshev on [1.0, 1.0] : !secure.tensor<4>
  // expected-error@+1 {{'secure.polynomial': found the domain [1.0], expected two finite numbers a < b}}
  %4 = secure.polynomial %x, [1.0] in monomial on [1.0] : !secure.tensor<4>
  // expected-error@+1 {{'secure.polynomial': found one of function and error, expected both or neither: an approximation states its error}}
  %5 = "secure.polynomial"(%x) <{coefficients = array<f64: 1.0>, basis = #secure<basis monomial>, domain = array<f64: 0.0, 1.0>, function = "relu"}> : (!secure.tensor<4>) -> !secure.tensor<4>
  // expected-error@+1 {{'secure.polynomial': found the error -1.0, expected a finite number of at least 0}}
  %6 = secure.polynomial %x, [1.0] in monomial on [0.0, 1.0] approximating "relu" within -1.0 : !secure.tensor<4>
  func.return
}

// -----

func.func @parse_basis(%x: !secure.tensor<4>) {
  // expected-error@+1 {{found 'legendre', expected `monomial`, or `chebyshev`}}
  %0 = secure.polynomial %x, [1.0] in legendre : !secure.tensor<4>
  func.return
}

// -----

func.func @sums(%x: !secure.tensor<2x3>) {
  // expected-error@+1 {{'secure.sum': found a result of shape 2, expected 1: summed dimensions go}}
  %0 = secure.sum %x : !secure.tensor<2x3> -> !secure.tensor<2>
  // expected-error@+1 {{'secure.sum': found a result of shape 3, expected 2: summed dimensions go}}
  %1 = secure.sum %x over [1] : !secure.tensor<2x3> -> !secure.tensor<3>
  // expected-error@+1 {{'secure.sum': found the dimensions [2], expected some of 0 to 1, each once and in order}}
  %2 = secure.sum %x over [2] : !secure.tensor<2x3> -> !secure.tensor<2>
  // expected-error@+1 {{'secure.sum': found the dimensions [-1], expected some of 0 to 1, each once and in order}}
  %3 = secure.sum %x over [-1] : !secure.tensor<2x3> -> !secure.tensor<2>
  // expected-error@+1 {{'secure.sum': found the dimensions [1, 0], expected some of 0 to 1, each once and in order}}
  %4 = secure.sum %x over [1, 0] : !secure.tensor<2x3> -> !secure.tensor<1>
  // expected-error@+1 {{'secure.sum': found the dimensions [], expected some of 0 to 1, each once and in order}}
  %5 = secure.sum %x over [] : !secure.tensor<2x3> -> !secure.tensor<2x3>
  // expected-error@+1 {{'secure.reshape': found a result of 5 elements, expected 6: a reshape keeps them all}}
  %6 = secure.reshape %x : !secure.tensor<2x3> -> !secure.tensor<5>
  func.return
}

// -----

func.func @matrices(%w: tensor<3x4xf64>, %v: tensor<4xf64>, %f: tensor<3x4xf32>, %x: !secure.tensor<4>, %y: !secure.tensor<3>, %z: !secure.tensor<2x2>) {
  // expected-error@+1 {{'secure.matvec': found an operand of shape 3, expected 4: the matrix has that many columns}}
  %0 = secure.matvec %w, %y : tensor<3x4xf64>, !secure.tensor<3> -> !secure.tensor<3>
  // expected-error@+1 {{'secure.matvec': found an operand of shape 2x2, expected 4: the matrix has that many columns}}
  %1 = secure.matvec %w, %z : tensor<3x4xf64>, !secure.tensor<2x2> -> !secure.tensor<3>
  // expected-error@+1 {{'secure.matvec': found a result of shape 4, expected 3: the matrix has that many rows}}
  %2 = secure.matvec %w, %x : tensor<3x4xf64>, !secure.tensor<4> -> !secure.tensor<4>
  // expected-error@+1 {{'secure.matvec': found a matrix of shape 4, expected two dimensions}}
  %3 = secure.matvec %v, %x : tensor<4xf64>, !secure.tensor<4> -> !secure.tensor<1>
  // expected-error@+1 {{'secure.matvec': found a matrix of type tensor<3x4xf32>, expected a secret tensor, or a public one of f64 with known sizes}}
  %4 = secure.matvec %f, %x : tensor<3x4xf32>, !secure.tensor<4> -> !secure.tensor<3>
  func.return
}

// -----

func.func @convolutions(%k: tensor<6x4x3x3xf64>, %m: tensor<3x3xf64>, %x: !secure.tensor<4x8x8>, %y: !secure.tensor<8x8>, %small: !secure.tensor<4x2x2>) {
  // expected-error@+1 {{'secure.conv2d': found a kernel of shape 3x3 on an image of shape 4x8x8, expected four dimensions and three}}
  %0 = secure.conv2d %m, %x : tensor<3x3xf64>, !secure.tensor<4x8x8> -> !secure.tensor<6x6x6>
  // expected-error@+1 {{'secure.conv2d': found a kernel of shape 6x4x3x3 on an image of shape 8x8, expected four dimensions and three}}
  %1 = secure.conv2d %k, %y : tensor<6x4x3x3xf64>, !secure.tensor<8x8> -> !secure.tensor<6x6x6>
  // expected-error@+1 {{'secure.conv2d': found stride [0, 1], expected two numbers of at least 1}}
  %2 = secure.conv2d %k, %x stride [0, 1] : tensor<6x4x3x3xf64>, !secure.tensor<4x8x8> -> !secure.tensor<6x6x6>
  // expected-error@+1 {{'secure.conv2d': found stride [2], expected two numbers of at least 1}}
  %3 = secure.conv2d %k, %x stride [2] : tensor<6x4x3x3xf64>, !secure.tensor<4x8x8> -> !secure.tensor<6x3x3>
  // expected-error@+1 {{'secure.conv2d': found padding [-1, 0], expected two numbers of at least 0}}
  %4 = secure.conv2d %k, %x padding [-1, 0] : tensor<6x4x3x3xf64>, !secure.tensor<4x8x8> -> !secure.tensor<6x6x6>
  // expected-error@+1 {{'secure.conv2d': found 4 groups, expected a divisor of 6, the channels of the result}}
  %5 = secure.conv2d %k, %x groups 4 : tensor<6x4x3x3xf64>, !secure.tensor<4x8x8> -> !secure.tensor<6x6x6>
  // expected-error@+1 {{'secure.conv2d': found 0 groups, expected a divisor of 6, the channels of the result}}
  %6 = secure.conv2d %k, %x groups 0 : tensor<6x4x3x3xf64>, !secure.tensor<4x8x8> -> !secure.tensor<6x6x6>
  // expected-error@+1 {{'secure.conv2d': found a kernel on 4 channels, 2 groups of them, expected 4, the channels of the image}}
  %7 = secure.conv2d %k, %x groups 2 : tensor<6x4x3x3xf64>, !secure.tensor<4x8x8> -> !secure.tensor<6x6x6>
  // expected-error@+1 {{'secure.conv2d': found a kernel of 3 by 3, expected one that fits into the padded image}}
  %8 = secure.conv2d %k, %small : tensor<6x4x3x3xf64>, !secure.tensor<4x2x2> -> !secure.tensor<6x1x1>
  // expected-error@+1 {{'secure.conv2d': found a result of shape 6x8x8, expected 6x6x6: kernel and stride decide}}
  %9 = secure.conv2d %k, %x : tensor<6x4x3x3xf64>, !secure.tensor<4x8x8> -> !secure.tensor<6x8x8>
  func.return
}
