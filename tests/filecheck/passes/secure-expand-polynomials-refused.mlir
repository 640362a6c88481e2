// RUN: %opt %s --verify-diagnostics -p secure-expand-polynomials

func.func @constant(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  // expected-error@+1 {{pass secure-expand-polynomials: found a polynomial that is the constant 0.5, expected one of degree 1 or more: the constant is no secret, so compute with it in the clear}}
  %y = secure.polynomial %x, [0.5, 0.0] in monomial : !secure.tensor<4>
  func.return %y : !secure.tensor<4>
}
