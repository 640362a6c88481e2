// RUN: %opt %s --split-input-file --verify-diagnostics

!pt = !ckks.plaintext<level = 1, scale = 2^5, form = evaluation>
!low = !ckks.plaintext<level = 0, scale = 2^5, form = evaluation>
!scaled = !ckks.plaintext<level = 1, scale = 2^6, form = evaluation>
!coeff = !ckks.plaintext<level = 1, scale = 2^5, form = coefficient>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 1, scale = 2^5, components = 3, form = evaluation>

func.func @messages(%v: tensor<3xf32>, %n: f64, %s: tensor<f64>, %ok: tensor<3xf64>, %p: !pt) {
  // expected-error@+1 {{found a message of type tensor<3xf32>, expected a tensor of f64 such as tensor<4096xf64>}}
  %0 = ckks.encode %v : tensor<3xf32> -> !pt
  // expected-error@+1 {{found a message of type f64, expected a tensor of f64 such as tensor<4096xf64>}}
  %1 = ckks.encode %n : f64 -> !pt
  // expected-error@+1 {{found a message without dimensions, expected a vector: tensor<1xf64>}}
  %2 = ckks.encode %s : tensor<f64> -> !pt
  // expected-error@+1 {{found result form coefficient, expected evaluation: that is what encoding makes}}
  %3 = ckks.encode %ok : tensor<3xf64> -> !coeff
  // expected-error@+1 {{found a result of unknown length, expected the number of values to read}}
  %4 = ckks.decode %p : !pt -> tensor<?xf64>
  func.return
}

// -----

#parameters = #ckks.parameters<
  ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2, scale = 2^5,
  secret = ternary, security = none>
!pt = !ckks.plaintext<level = 1, scale = 2^5, form = evaluation>
builtin.module attributes {ckks.parameters = #parameters} {
  func.func @slots(%v: tensor<5xf64>) {
    // expected-error@+1 {{found a message of 5 values, expected at most 4, the slots of ckks.parameters}}
    %0 = ckks.encode %v : tensor<5xf64> -> !pt
    func.return
  }
}

// -----

!pt = !ckks.plaintext<level = 1, scale = 2^5, form = evaluation>
!low = !ckks.plaintext<level = 0, scale = 2^5, form = evaluation>
!ct = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 1, scale = 2^5, components = 3, form = evaluation>
!scaled = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!coeff = !ckks.ciphertext<level = 1, scale = 2^5, components = 2, form = coefficient>

func.func @states(%p: !pt, %x: !ct) {
  %secret = fhelium.resource @secret : !ckks.client_key<secret>
  %public = fhelium.resource @public : !ckks.client_key<public>
  // expected-error@+1 {{found result components 3, expected 2: a fresh one has two}}
  %0 = ckks.encrypt %p with %public : !pt, !ckks.client_key<public> -> !ct3
  // expected-error@+1 {{found result scale 2^6, expected 2^5: this op keeps it}}
  %1 = ckks.encrypt %p with %public : !pt, !ckks.client_key<public> -> !scaled
  // expected-error@+1 {{found result form coefficient, expected evaluation: that is what this op makes}}
  %2 = ckks.encrypt %p with %public : !pt, !ckks.client_key<public> -> !coeff
  // expected-error@+1 {{found result level 0, expected 1: this op keeps it}}
  %3 = ckks.decrypt %x with %secret : !ct -> !low
  // expected-error@+1 {{operand 'key' at position 1 does not verify}}
  %4 = "ckks.decrypt"(%x, %public) : (!ct, !ckks.client_key<public>) -> !pt
  func.return
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97]], special = [193], digits = 1, scale = 2^5,
                      secret = ternary, security = none>
!pt = !ckks.plaintext<level = 0, scale = 2^5, form = evaluation>
!high = !ckks.plaintext<level = 1, scale = 2^5, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  func.func @limits(%v: tensor<4xf64>, %p: !pt) {
    // expected-error@+1 {{found a message of 5 values, expected at most 4, the slots of ckks.parameters}}
    %0 = ckks.decode %p : !pt -> tensor<5xf64>
    // expected-error@+1 {{'ckks.encode': found level 1, expected at most 0, the top level of ckks.parameters}}
    %1 = ckks.encode %v : tensor<4xf64> -> !high
    func.return
  }
}
