// RUN: %opt %s --split-input-file --verify-diagnostics -p secure-assign-layouts{slots=4096}

// What does not fit, and what is not understood.

// expected-error@+1 {{pass secure-assign-layouts: found a tensor of 10000 elements, expected at most 4096, the slots that each sample of the batch has: use more slots, or a smaller batch}}
func.func @large(%x: !secure.tensor<100x100>) {
  func.return
}

// -----

func.func @expands(%w: tensor<10000x4xf64>, %x: !secure.tensor<4>) {
  // expected-error@+1 {{pass secure-assign-layouts: found a tensor of 10000 elements, expected at most 4096, the slots that each sample of the batch has: use more slots, or a smaller batch}}
  %y = secure.matvec %w, %x : tensor<10000x4xf64>, !secure.tensor<4> -> !secure.tensor<10000>
  func.return
}

// -----

func.func @convolution(%k: tensor<4x2x3x3xf64>, %x: !secure.tensor<2x8x8>) {
  // expected-error@+1 {{pass secure-assign-layouts: found secure.conv2d, expected it lowered: run secure-lower-convolutions before}}
  %y = secure.conv2d %k, %x : tensor<4x2x3x3xf64>, !secure.tensor<2x8x8> -> !secure.tensor<4x6x6>
  func.return
}

// -----

func.func private @callee(!secure.tensor<4>)
func.func @call(%x: !secure.tensor<4>) {
  // expected-error@+1 {{pass secure-assign-layouts: found func.call on secret tensors, expected ops of the secure dialect in one block: inline calls and unroll loops before}}
  func.call @callee(%x) : (!secure.tensor<4>) -> ()
  func.return
}

// -----

// expected-error@+1 {{pass secure-assign-layouts: found slots=4096, expected 128, half the ring degree of ckks.parameters: leave the option out, or the parameters}}
builtin.module attributes {ckks.parameters = #ckks.parameters<ring_degree = 256, moduli = [[7681]],
                           special = [12289], digits = 1, scale = 2^6, secret = ternary, security = none>} {
  func.func @main(%x: !secure.tensor<4>) {
    func.return
  }
}
