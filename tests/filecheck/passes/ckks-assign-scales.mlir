// RUN: %opt %s -p ckks-assign-scales --no-aliases | filecheck %s
// RUN: %opt %s -p 'ckks-assign-scales,ckks-assign-scales' --no-aliases | filecheck %s

// The scales: 2^7 at level 2, s1 = 2^14 / 113 at level 1, s0 = s1^2 / 193 at level 0.
#p = #ckks.parameters<ring_degree = 8, moduli = [[257], [193], [113]], special = [241],
                      digits = 3, scale = 2^7, secret = ternary, security = none>
!ct2 = !ckks.ciphertext<level = 2, components = 2, form = evaluation>
!ct1 = !ckks.ciphertext<level = 1, components = 2, form = evaluation>
!ct0 = !ckks.ciphertext<level = 0, components = 2, form = evaluation>
!pt2 = !ckks.plaintext<level = 2, form = evaluation>
!pt1 = !ckks.plaintext<level = 1, form = evaluation>
!pt0 = !ckks.plaintext<level = 0, form = evaluation>
!s = !ckks.ciphertext<level = 0, scale = 2^6, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {

// A product has the square of its level's scale, and its rescale the scale of the next level, where
// an input may come in too. A plaintext has the scale of what it is added to.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    level = 2, scale = 2^7,
// CHECK-SAME:    level = 1, scale = 144.99115044247787,
// CHECK:         ckks.encode {{.*}} -> !ckks.plaintext<level = 2, scale = 2^7,
// CHECK:         ckks.mul_plain {{.*}} -> !ckks.ciphertext<level = 2, scale = 2^14,
// CHECK:         ckks.rescale {{.*}} -> !ckks.ciphertext<level = 1, scale = 144.99115044247787,
// CHECK:         ckks.encode {{.*}} -> !ckks.plaintext<level = 1, scale = 144.99115044247787,
// CHECK:         ckks.add_plain
// CHECK:         ckks.mul_scalar {{.*}} -> !ckks.ciphertext<level = 1, scale = 21022.433706633252,
// CHECK:         ckks.rescale {{.*}} -> !ckks.ciphertext<level = 0, scale = 108.924526977374{{[0-9]*}},
func.func @main(%x: !ct2, %y: !ct1, %v: tensor<4xf64>) -> !ct0 {
  %p = ckks.encode %v : tensor<4xf64> -> !pt2
  %a = ckks.mul_plain %x, %p : (!ct2, !pt2) -> !ct2
  %b = ckks.rescale %a : !ct2 -> !ct1
  %c = ckks.add %b, %y : !ct1
  %q = ckks.encode %v : tensor<4xf64> -> !pt1
  %d = ckks.add_plain %c, %q : !ct1, !pt1
  %e = ckks.mul_scalar %d, 0.5 : !ct1 -> !ct1
  %f = ckks.rescale %e : !ct1 -> !ct0
  func.return %f : !ct0
}

// What a product with a plaintext starts from does not matter: the plaintext makes up for it. One
// encoding that is added to a value and multiplies another becomes two.
// CHECK-LABEL: func.func @switched
// CHECK:         ckks.encode {{.*}} -> !ckks.plaintext<level = 1, scale = 164.237763
// CHECK:         ckks.encode {{.*}} -> !ckks.plaintext<level = 1, scale = 2^7,
// CHECK:         ckks.mod_switch {{.*}} -> !ckks.ciphertext<level = 1, scale = 2^7,
// CHECK:         ckks.mul_plain {{.*}} -> !ckks.ciphertext<level = 1, scale = 21022.433706633252,
// CHECK:         ckks.rescale {{.*}} -> !ckks.ciphertext<level = 0, scale = 108.924526977374{{[0-9]*}},
func.func @switched(%x: !ct2, %v: tensor<4xf64>) -> (!ct0, !ct1) {
  %p = ckks.encode %v : tensor<4xf64> -> !pt1
  %a = ckks.mod_switch %x : !ct2 -> !ct1
  %b = ckks.mul_plain %a, %p : (!ct1, !pt1) -> !ct1
  %c = ckks.rescale %b : !ct1 -> !ct0
  %d = ckks.add_plain %a, %p : !ct1, !pt1
  func.return %c, %d : !ct0, !ct1
}

// A plaintext that nothing uses has the default scale.
// CHECK-LABEL: func.func @unused
// CHECK-SAME:    scale = 2^7
func.func @unused(%x: !ct0, %p: !pt0) -> !ct0 {
  func.return %x : !ct0
}

// Unless it has one.
// CHECK-LABEL: func.func @unused_given
// CHECK-SAME:    scale = 2^9
func.func @unused_given(%x: !ct0, %p: !ckks.plaintext<level = 0, scale = 2^9, form = evaluation>) -> !ct0 {
  func.return %x : !ct0
}

// A function with a scale everywhere is left alone, canonical or not.
// CHECK-LABEL: func.func @assigned
// CHECK-SAME:    scale = 2^6
func.func @assigned(%x: !s) -> !s {
  func.return %x : !s
}
}
