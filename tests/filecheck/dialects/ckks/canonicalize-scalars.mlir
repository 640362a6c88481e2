// RUN: %opt %s -p canonicalize | filecheck %s

!x = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!y = !ckks.ciphertext<level = 1, scale = 2^12, components = 2, form = evaluation>
!z = !ckks.ciphertext<level = 1, scale = 2^18, components = 2, form = evaluation>
!z3 = !ckks.ciphertext<level = 1, scale = 2^12, components = 3, form = evaluation>
!open = !ckks.ciphertext<level = 1, components = 2, form = evaluation>

// CHECK-LABEL: @sums
// CHECK-NEXT: %[[sum:.*]] = ckks.add_scalar %x, 7.500000e-01
// CHECK-NEXT: func.return %[[sum]]
func.func @sums(%x: !x) -> !x {
  %a = ckks.add_scalar %x, 0.5 : !x
  %b = ckks.add_scalar %a, 0.25 : !x
  func.return %b : !x
}

// A sum of 1024 bits at its scale is left to be computed modulo the primes.
// CHECK-LABEL: @wide_sum
// CHECK-NEXT: ckks.add_scalar
// CHECK-NEXT: ckks.add_scalar
func.func @wide_sum(%x: !x) -> !x {
  %a = ckks.add_scalar %x, 1.2e306 : !x
  %b = ckks.add_scalar %a, 1.2e306 : !x
  func.return %b : !x
}

// CHECK-LABEL: @products
// CHECK-NEXT: %[[product:.*]] = ckks.mul_scalar %x, -1.250000e-01 : !ct_L1_s6 -> !ct_L1_s18
// CHECK-NEXT: func.return %[[product]]
func.func @products(%x: !x) -> !z {
  %a = ckks.mul_scalar %x, 0.5 : !x -> !y
  %b = ckks.mul_scalar %a, -0.25 : !y -> !z
  func.return %b : !z
}

// A product that rounds to zero is left to be computed, and so is one whose middle is open.
// CHECK-LABEL: @products_kept
// CHECK-COUNT-4: ckks.mul_scalar
// CHECK: func.return
func.func @products_kept(%x: !x) -> (!z, !z) {
  %a = ckks.mul_scalar %x, 0.008 : !x -> !y
  %b = ckks.mul_scalar %a, 0.008 : !y -> !z
  %c = ckks.mul_scalar %x, 0.5 : !x -> !open
  %d = ckks.mul_scalar %c, 0.5 : !open -> !z
  func.return %b, %d : !z, !z
}

// CHECK-LABEL: @integers
// CHECK-NEXT: %[[product:.*]] = ckks.mul_integer %x, -6
// CHECK-NEXT: %[[negated:.*]] = ckks.negate %x
// CHECK-NEXT: func.return %[[product]], %x, %[[negated]]
func.func @integers(%x: !x) -> (!x, !x, !x) {
  %a = ckks.mul_integer %x, 2 : !x
  %b = ckks.mul_integer %a, -3 : !x
  %c = ckks.mul_integer %x, 1 : !x
  %d = ckks.mul_integer %x, -1 : !x
  func.return %b, %c, %d : !x, !x, !x
}

// CHECK-LABEL: @wide_integers
// CHECK-NEXT: ckks.mul_integer
// CHECK-NEXT: ckks.mul_integer
func.func @wide_integers(%x: !x) -> !x {
  %a = ckks.mul_integer %x, 4294967296 : !x
  %b = ckks.mul_integer %a, 4294967296 : !x
  func.return %b : !x
}

// CHECK-LABEL: @square
// CHECK-NEXT: %[[square:.*]] = ckks.square %x
// CHECK-NEXT: %[[product:.*]] = ckks.mul %x, %y
// CHECK-NEXT: func.return %[[square]], %[[product]]
func.func @square(%x: !x, %y: !x) -> (!z3, !z3) {
  %a = ckks.mul %x, %x : (!x, !x) -> !z3
  %b = ckks.mul %x, %y : (!x, !x) -> !z3
  func.return %a, %b : !z3, !z3
}

// Without state too, since a factor has two components.
// CHECK-LABEL: @square_unassigned
// CHECK-NEXT: ckks.square %x
func.func @square_unassigned(%x: !ckks.ciphertext) -> !ckks.ciphertext {
  %a = ckks.mul %x, %x : (!ckks.ciphertext, !ckks.ciphertext) -> !ckks.ciphertext
  func.return %a : !ckks.ciphertext
}

// An op that records how it runs stays.
// CHECK-LABEL: @assigned
// CHECK-NEXT: ckks.mul %x, %x
// CHECK-NEXT: ckks.add_scalar
// CHECK-NEXT: ckks.add_scalar
// CHECK-NEXT: ckks.mul_integer
func.func @assigned(%x: !x) -> (!z3, !x, !x) {
  %a = ckks.mul %x, %x {fhelium.implementation = "mine"} : (!x, !x) -> !z3
  %b = ckks.add_scalar %x, 0.5 : !x
  %c = ckks.add_scalar %b, 0.5 {fhelium.implementation = "mine"} : !x
  %d = ckks.mul_integer %x, -1 {fhelium.implementation = "mine"} : !x
  func.return %a, %c, %d : !z3, !x, !x
}
