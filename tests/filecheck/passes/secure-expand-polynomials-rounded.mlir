// RUN: %opt %s -p secure-expand-polynomials | filecheck %s

#p = #ckks.parameters<ring_degree = 8, moduli = [[257], [193], [113]], special = [241],
                      digits = 3, scale = 2^7, secret = ternary, security = none>
builtin.module attributes {ckks.parameters = #p} {

// Terms below 2^-7 would round to 0 at the scale; T_2 alone is left, and the small constant.
// CHECK-LABEL: func.func @rounded
func.func @rounded(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  // CHECK-NEXT: %[[square:.*]] = secure.mul %x, %x
  // CHECK-NEXT: %[[double:.*]] = secure.add %[[square]], %[[square]]
  // CHECK-NEXT: arith.constant dense<-1.0{{.*}}>
  // CHECK-NEXT: %[[t2:.*]] = secure.add
  // CHECK-NEXT: arith.constant dense<1.0{{.*}}e-03>
  // CHECK-NEXT: %[[result:.*]] = secure.add %[[t2]]
  // CHECK-NEXT: func.return %[[result]]
  %y = secure.polynomial %x, [0.001, 0.0077, 1.0, 0.0, 0.0, -0.0001] in chebyshev on [-1.0, 1.0] : !secure.tensor<4>
  func.return %y : !secure.tensor<4>
}

// A term of 2^-7 or more stays.
// CHECK-LABEL: func.func @kept
func.func @kept(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  // CHECK: arith.constant dense<7.9{{.*}}e-03>
  // CHECK-NEXT: secure.mul %x
  %y = secure.polynomial %x, [0.0, 0.0079, 1.0] in chebyshev on [-1.0, 1.0] : !secure.tensor<4>
  func.return %y : !secure.tensor<4>
}

// On a wide domain the term counts, not the coefficient of a power: with 0.25 T_2(x / 16), that of
// x^2 would be 2^-9, so the domain is brought to [-1, 1].
// CHECK-LABEL: func.func @wide
func.func @wide(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  // CHECK-NEXT: arith.constant dense<6.25{{.*}}e-02>
  // CHECK-NEXT: %[[u:.*]] = secure.mul %x
  // CHECK: secure.mul %[[u]], %[[u]]
  %y = secure.polynomial %x, [0.0, 0.0, 0.25] in chebyshev on [-16.0, 16.0] : !secure.tensor<4>
  // CHECK: func.return
  func.return %y : !secure.tensor<4>
}

// Powers of x may be large: nothing is left out.
// CHECK-LABEL: func.func @monomial
func.func @monomial(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  // CHECK: arith.constant dense<1.0{{.*}}e-03>
  // CHECK-NEXT: secure.mul
  %y = secure.polynomial %x, [0.0, 1.0, 0.001] in monomial : !secure.tensor<4>
  func.return %y : !secure.tensor<4>
}
}
