// RUN: %opt %s --split-input-file --verify-diagnostics -p convert-secure-to-ckks

// What can not be lowered is refused at its place.

// expected-error@+1 {{pass convert-secure-to-ckks: found func.func with a value of type !secure.tensor<4>, expected a layout: run secure-assign-layouts before}}
func.func @bare(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  func.return %x : !secure.tensor<4>
}

// -----

#a = #secure.layout<slots = 16, batch = 2, period = 4, grid = [4], strides = [1]>
func.func @polynomial(%x: !secure.tensor<4, #a>) {
  // expected-error@+1 {{pass convert-secure-to-ckks: found secure.polynomial, expected it lowered: run secure-expand-polynomials before}}
  %y = secure.polynomial %x, [0.0, 0.25] in monomial : !secure.tensor<4, #a>
  func.return
}

// -----

#a = #secure.layout<slots = 16, batch = 2, period = 4, grid = [4], strides = [1]>
func.func @convolution(%x: !secure.tensor<1x2x2, #a>, %k: tensor<1x1x1x1xf64>) {
  // expected-error@+1 {{pass convert-secure-to-ckks: found secure.conv2d, expected it lowered: run secure-lower-convolutions before}}
  %y = secure.conv2d %k, %x : tensor<1x1x1x1xf64>, !secure.tensor<1x2x2, #a> -> !secure.tensor<1x2x2, #a>
  func.return
}

// -----

// expected-error@+1 {{pass convert-secure-to-ckks: found @callee without a body of one block, expected one}}
func.func private @callee(!secure.tensor<4>)

// -----

#a = #secure.layout<slots = 16, batch = 2, period = 4, grid = [4], strides = [1]>
func.func @guest(%x: !secure.tensor<4, #a>) {
  // expected-error@+1 {{pass convert-secure-to-ckks: found test.op on secret tensors, expected ops of the secure dialect: inline calls and unroll loops before}}
  "test.op"(%x) : (!secure.tensor<4, #a>) -> ()
  func.return
}

// -----

#a = #secure.layout<slots = 16, batch = 2, period = 4, grid = [4], strides = [1]>
func.func @assigned(%x: !secure.tensor<4, #a>) {
  // expected-error@+1 {{pass convert-secure-to-ckks: found secure.negate with an implementation or a device assigned, expected none: an op on packed tensors becomes several, so drop the attribute}}
  %y = secure.negate %x {fhelium.implementation = "mine"} : !secure.tensor<4, #a>
  func.return
}

// -----

#a = #secure.layout<slots = 16, batch = 2, period = 4, grid = [4], strides = [1]>
#b = #secure.layout<slots = 32, batch = 2, period = 4, grid = [4], strides = [1]>
func.func @one(%x: !secure.tensor<4, #a>) {
  func.return
}
// expected-error@+1 {{pass convert-secure-to-ckks: found layouts of other than 16 slots, expected one number in a module: all ciphertexts are of one ring}}
func.func @other(%x: !secure.tensor<4, #b>) {
  func.return
}

// -----

#a = #secure.layout<slots = 16, batch = 2, period = 4, grid = [4], strides = [1]>
// expected-error@+1 {{pass convert-secure-to-ckks: found layouts of 16 slots, expected 128, half the ring degree of ckks.parameters: assign layouts with the parameters given}}
builtin.module attributes {ckks.parameters = #ckks.parameters<ring_degree = 256, moduli = [[7681]],
                           special = [12289], digits = 1, scale = 2^6, secret = ternary, security = none>} {
  func.func @main(%x: !secure.tensor<4, #a>) {
    func.return
  }
}

// -----

#a = #secure.layout<slots = 16, batch = 2, period = 8, grid = [8], strides = [1]>
#b = #secure.layout<slots = 16, batch = 2, period = 4, grid = [4], strides = [1]>
func.func @sum(%x: !secure.tensor<4x2, #a>) {
  // expected-error@+1 {{pass convert-secure-to-ckks: found a sum from #secure.layout<slots = 16, batch = 2, period = 8, grid = [8], strides = [1]> to #secure.layout<slots = 16, batch = 2, period = 4, grid = [4], strides = [1]>, expected the layout that is left when the summed dimensions go: assign it with secure-assign-layouts}}
  %y = secure.sum %x over [1] : !secure.tensor<4x2, #a> -> !secure.tensor<4, #b>
  func.return
}
