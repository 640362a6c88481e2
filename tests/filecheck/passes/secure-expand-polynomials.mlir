// RUN: %opt %s -p secure-expand-polynomials | filecheck %s
// RUN: %opt %s -p secure-expand-polynomials,secure-expand-polynomials | filecheck %s
// RUN: %opt %s -p secure-expand-polynomials --print-debuginfo | filecheck %s --check-prefix=PLACE

// Degree 3 in two levels: (3 x - 2) x^2 + (x / 4 + 1 / 2).
// CHECK-LABEL: func.func @degree_3
func.func @degree_3(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  // CHECK-NEXT: %[[c3:.*]] = arith.constant dense<3.0{{.*}}> : tensor<4xf64>
  // CHECK-NEXT: %[[t3:.*]] = secure.mul %x, %[[c3]]
  // CHECK-NEXT: %[[c2:.*]] = arith.constant dense<-2.0{{.*}}> : tensor<4xf64>
  // CHECK-NEXT: %[[q:.*]] = secure.add %[[t3]], %[[c2]]
  // CHECK-NEXT: %[[square:.*]] = secure.mul %x, %x
  // CHECK-NEXT: %[[high:.*]] = secure.mul %[[square]], %[[q]]
  // CHECK-NEXT: %[[c1:.*]] = arith.constant dense<2.5{{.*}}e-01> : tensor<4xf64>
  // CHECK-NEXT: %[[t1:.*]] = secure.mul %x, %[[c1]]
  // CHECK-NEXT: %[[c0:.*]] = arith.constant dense<5.0{{.*}}e-01> : tensor<4xf64>
  // CHECK-NEXT: %[[r:.*]] = secure.add %[[t1]], %[[c0]]
  // CHECK-NEXT: %[[result:.*]] = secure.add %[[high]], %[[r]]
  // PLACE: secure.add %{{.*}}, %{{.*}} loc("{{.*}}polynomials.mlir":[[# @LINE + 1]]:8)
  %y = secure.polynomial %x, [0.5, 0.25, -2.0, 3.0] in monomial : !secure.tensor<4>
  // CHECK-NEXT: func.return %[[result]]
  func.return %y : !secure.tensor<4>
}

// A coefficient of one scales nothing, and zeros cost nothing.
// CHECK-LABEL: func.func @few
func.func @few(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  // CHECK-NEXT: %[[square:.*]] = secure.mul %x, %x
  // CHECK-NEXT: %[[fourth:.*]] = secure.mul %[[square]], %[[square]]
  // CHECK-NEXT: func.return %[[fourth]]
  %y = secure.polynomial %x, [0.0, 0.0, 0.0, 0.0, 1.0, 0.0] in monomial : !secure.tensor<4>
  func.return %y : !secure.tensor<4>
}

// T_2(x) is 2 x^2 - 1: doubling is a sum, which takes no level.
// CHECK-LABEL: func.func @chebyshev
func.func @chebyshev(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  // CHECK-NEXT: %[[square:.*]] = secure.mul %x, %x
  // CHECK-NEXT: %[[double:.*]] = secure.add %[[square]], %[[square]]
  // CHECK-NEXT: %[[one:.*]] = arith.constant dense<-1.0{{.*}}> : tensor<4xf64>
  // CHECK-NEXT: %[[t2:.*]] = secure.add %[[double]], %[[one]]
  // CHECK-NEXT: func.return %[[t2]]
  %y = secure.polynomial %x, [0.0, 0.0, 1.0] in chebyshev on [-1.0, 1.0] : !secure.tensor<4>
  func.return %y : !secure.tensor<4>
}

// On another domain, powers of x spare a level where that costs little precision: here
// 2 T_2(x / 4) = x^2 / 4 - 2.
// CHECK-LABEL: func.func @wide
func.func @wide(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  // CHECK-NEXT: %[[square:.*]] = secure.mul %x, %x
  // CHECK-NEXT: %[[quarter:.*]] = arith.constant dense<2.5{{.*}}e-01> : tensor<4xf64>
  // CHECK-NEXT: %[[scaled:.*]] = secure.mul %[[square]], %[[quarter]]
  // CHECK-NEXT: %[[two:.*]] = arith.constant dense<-2.0{{.*}}> : tensor<4xf64>
  // CHECK-NEXT: secure.add %[[scaled]], %[[two]]
  // CHECK-NEXT: func.return
  %y = secure.polynomial %x, [0.0, 0.0, 2.0] in chebyshev on [-4.0, 4.0] : !secure.tensor<4>
  func.return %y : !secure.tensor<4>
}

// Otherwise the domain is brought to [-1, 1] first.
// CHECK-LABEL: func.func @high
func.func @high(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  // CHECK-NEXT: %[[scale:.*]] = arith.constant dense<2.5{{.*}}e-01> : tensor<4xf64>
  // CHECK-NEXT: %[[scaled:.*]] = secure.mul %x, %[[scale]]
  // CHECK-NEXT: %[[centre:.*]] = arith.constant dense<-5.0{{.*}}e-01> : tensor<4xf64>
  // CHECK-NEXT: %[[u:.*]] = secure.add %[[scaled]], %[[centre]]
  // CHECK: secure.mul %[[u]], %[[u]]
  // CHECK-NOT: secure.mul %x
  %y = secure.polynomial %x, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0] in chebyshev on [-2.0, 6.0] : !secure.tensor<4>
  // CHECK: func.return
  func.return %y : !secure.tensor<4>
}

// What records an implementation stays, and so does everything else.
// CHECK-LABEL: func.func @assigned
func.func @assigned(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  // CHECK-NEXT: secure.polynomial %x
  // CHECK-NEXT: secure.mul
  %y = secure.polynomial %x, [0.0, 0.25] in monomial {fhelium.implementation = "mine"} : !secure.tensor<4>
  %z = secure.mul %y, %y : !secure.tensor<4>, !secure.tensor<4>
  func.return %z : !secure.tensor<4>
}
