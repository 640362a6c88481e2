// RUN: %opt %s --split-input-file -p secure-select-parameters | filecheck %s

// A sum with a material takes room for its values, where the text says how large they are.
// CHECK: moduli = {{\[}}[67043329, 67239937]], {{.*}} scale = 2^38,
// CHECK: fhelium.material @w {secure.largest = 1.000000e+03 : f64}
func.func @main(%x: !secure.tensor<8>) -> !secure.tensor<8> {
  %w = fhelium.material @w {secure.largest = 1.0e3 : f64} : tensor<8xf64>
  %y = secure.add %x, %w : !secure.tensor<8>, tensor<8xf64>
  func.return %y : !secure.tensor<8>
}

// -----

// Without it, a material leaves a value as large as it is.
// CHECK: moduli = {{\[}}[4398046150657]], {{.*}} scale = 2^38,
func.func @main(%x: !secure.tensor<8>) -> !secure.tensor<8> {
  %w = fhelium.material @w : tensor<8xf64>
  %y = secure.add %x, %w : !secure.tensor<8>, tensor<8xf64>
  func.return %y : !secure.tensor<8>
}

// -----

// Nor does anything but a finite number say how large.
// CHECK: moduli = {{\[}}[4398046150657]], {{.*}} scale = 2^38,
func.func @main(%x: !secure.tensor<8>) -> !secure.tensor<8> {
  %w = fhelium.material @w {secure.largest = "much"} : tensor<8xf64>
  %y = secure.add %x, %w : !secure.tensor<8>, tensor<8xf64>
  func.return %y : !secure.tensor<8>
}

// -----

// A product takes a greater scale too, so that as many digits after the point stay.
// CHECK: moduli = {{\[}}[1518452737, 1518518273], [140737488273409]], {{.*}} scale = 2^47,
func.func @main(%x: !secure.tensor<8>) -> !secure.tensor<8> {
  %w = fhelium.material @w {secure.largest = 1.0e3 : f64} : tensor<8xf64>
  %y = secure.mul %x, %w : !secure.tensor<8>, tensor<8xf64>
  func.return %y : !secure.tensor<8>
}

// -----

// A public input is as large as any other.
// CHECK: moduli = {{\[}}[70368743669761]], {{.*}} scale = 2^38,
func.func @main(%x: !secure.tensor<8>, %p: tensor<8xf64>) -> !secure.tensor<8> {
  %a = secure.add %x, %p : !secure.tensor<8>, tensor<8xf64>
  %b = secure.add %a, %a : !secure.tensor<8>, !secure.tensor<8>
  %c = secure.sub %b, %b : !secure.tensor<8>, !secure.tensor<8>
  %y = secure.add %c, %c : !secure.tensor<8>, !secure.tensor<8>
  func.return %y : !secure.tensor<8>
}
