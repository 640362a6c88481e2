// RUN: %opt %s --split-input-file --verify-diagnostics -p ckks-insert-relinearize

!ct = !ckks.ciphertext
func.func @sum_is_relinearized(%x: !ct, %key: !ckks.key<relinearization>) -> !ct {
  %a = ckks.square %x : !ct -> !ct
  %b = ckks.add %a, %a : !ct
  // expected-error@+1 {{found ckks.relinearize on a value that strategy=eager restores before: drop the op, or say strategy=lazy}}
  %c = ckks.relinearize %b with %key : !ct -> !ct
  func.return %c : !ct
}

// -----

!ct = !ckks.ciphertext
func.func @call(%x: !ct) -> !ct {
  // expected-error@+1 {{found a call of @other with ciphertexts, expected its ops in place: calls may need them in several states, and a function has one}}
  %a = func.call @other(%x) : (!ct) -> !ct
  func.return %a : !ct
}
func.func private @other(!ct) -> !ct

// -----

!ct = !ckks.ciphertext
func.func @while(%x: !ct, %c: i1) -> !ct {
  // expected-error@+1 {{found scf.while on ciphertexts, expected an op whose effect on levels and scales is known: those of ckks, dist and mem, scf.for, scf.if and arith.select}}
  %y = scf.while (%z = %x) : (!ct) -> (!ct) {
    scf.condition(%c) %z : !ct
  } do {
  ^bb0(%z: !ct):
    scf.yield %z : !ct
  }
  func.return %y : !ct
}

// -----

!ct = !ckks.ciphertext
// expected-error@+1 {{found several blocks in func.func, expected one: use scf.for and scf.if instead of branches}}
func.func @jump(%x: !ct) -> !ct {
  cf.br ^next(%x : !ct)
^next(%y: !ct):
  func.return %y : !ct
}

// -----

!ct = !ckks.ciphertext
// expected-error@+1 {{found fhelium.material outside of a function, expected it in one}}
%x = fhelium.material @x : !ct

// -----

// What the text says stays, or is refused.
// expected-error@+1 {{found a ciphertext of 3 components from func.func, expected 2 with what the pass places: leave components out for it to find}}
func.func @assigned(%x: !ckks.ciphertext<components = 3>) -> !ckks.ciphertext {
  %y = ckks.mul_scalar %x, 0.5 : !ckks.ciphertext<components = 3> -> !ckks.ciphertext
  func.return %y : !ckks.ciphertext
}
