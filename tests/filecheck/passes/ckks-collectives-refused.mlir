// RUN: %opt %s --split-input-file --verify-diagnostics -p ckks-default
// RUN: %opt %s --split-input-file --verify-diagnostics -p ckks-lazy

// A chain in which all messages have one tag, and lose a level each.
!ct = !ckks.ciphertext
func.func @chain(%x: !ct) -> !ct {
  %world = fhelium.resource @world : !dist.group
  dist.send %x to 1 in %world : !ct
  // expected-error@+1 {{pass ckks-insert-mod-switch: found dist.recv that carries a ciphertext to a lower level each time around, expected one that keeps its level: messages of tag 0 are all at one level, so give those of another level another tag}}
  %y = dist.recv from 0 in %world : !ct
  %z = ckks.mul %y, %y : (!ct, !ct) -> !ct
  dist.send %z to 2 in %world : !ct
  func.return %y : !ct
}

// -----

!ct = !ckks.ciphertext
func.func @unsent(%x: !ct) -> !ct {
  %world = fhelium.resource @world : !dist.group
  dist.send %x to 1 in %world tag 1 : !ct
  // expected-error@+1 {{found dist.recv with tag 2, which no dist.send in the function has, expected one, whose state it takes: give both one tag, or write the level, scale, components, form of what is received in the text}}
  %y = dist.recv from 0 in %world tag 2 : !ct
  %z = ckks.mul %y, %y : (!ct, !ct) -> !ct
  func.return %z : !ct
}

// -----

// Too low for the messages of its tag.
!ct = !ckks.ciphertext
func.func @low(%x: !ckks.ciphertext<level = 0>) -> !ct {
  %world = fhelium.resource @world : !dist.group
  // expected-error@+1 {{found dist.recv on a value at level 0, expected at least 1, the rescales from there to the end}}
  %y = dist.recv from 0 in %world : !ct
  dist.send %x to 1 in %world : !ckks.ciphertext<level = 0>
  %z = ckks.mul %y, %y : (!ct, !ct) -> !ct
  func.return %z : !ct
}

// -----

// What is combined is to keep its level.
!ct = !ckks.ciphertext
func.func @product(%x: !ct) -> !ct {
  %world = fhelium.resource @world : !dist.group
  // expected-error@+1 {{found dist.reduce that carries a ciphertext to a lower level each time around, expected one that keeps its level: multiply before or behind it}}
  %y = dist.reduce %x to 0 in %world : !ct combine {
  ^bb0(%a: !ct, %b: !ct):
    %c = ckks.mul %a, %b : (!ct, !ct) -> !ct
    dist.yield %c : !ct
  }
  func.return %y : !ct
}

// -----

!ct = !ckks.ciphertext
// expected-error@+1 {{found func.func with tensor<2x!ckks.ciphertext>, expected a ciphertext, which may be a batch of them: a tensor of ciphertexts is not scheduled, so write its state in the text}}
func.func @tensors(%x: tensor<2x!ct>) -> tensor<?x!ct> {
  %world = fhelium.resource @world : !dist.group
  %y = dist.all_gather %x along 0 in %world : tensor<2x!ct> -> tensor<?x!ct>
  func.return %y : tensor<?x!ct>
}

// -----

// A form that the text does not say of what is received.
!ct = !ckks.ciphertext
func.func @forms(%x: !ct) -> !ct {
  %world = fhelium.resource @world : !dist.group
  %c = ckks.to_coefficient %x : !ct -> !ct
  dist.send %c to 1 in %world : !ct
  // expected-error@+1 {{pass ckks-assign-levels: found messages of tag 0 in evaluation and coefficient form, expected one: give each form a tag of its own, and write form = coefficient on what is received in it}}
  %y = dist.recv from 0 in %world : !ct
  func.return %y : !ct
}

// -----

// One message can't be at two levels.
!ct = !ckks.ciphertext
!pt = !ckks.plaintext
func.func @plaintext(%x: !ct, %y: !ct, %v: tensor<8xf64>) -> (!ct, !ct) {
  %world = fhelium.resource @world : !dist.group
  %p = ckks.encode %v : tensor<8xf64> -> !pt
  %q = dist.broadcast %p from 0 in %world : !pt
  %a = ckks.mul_plain %x, %q : (!ct, !pt) -> !ct
  %b = ckks.mul %a, %y : (!ct, !ct) -> !ct
  // expected-error@+1 {{found a plaintext from dist.broadcast that is used as}}
  %c = ckks.mul_plain %b, %q : (!ct, !pt) -> !ct
  func.return %a, %c : !ct, !ct
}
