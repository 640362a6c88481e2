// RUN: %opt %s --split-input-file --verify-diagnostics -p ckks-assign-levels

!ct = !ckks.ciphertext
func.func @apart(%x: !ct) -> !ct {
  %a = ckks.rescale %x : !ct -> !ct
  // expected-error@+1 {{found ckks.add on values 1 levels apart, expected one level: ckks-insert-mod-switch brings them there}}
  %b = ckks.add %a, %x : !ct
  func.return %b : !ct
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97], [113]], special = [193], digits = 2,
                      scale = 2^5, secret = ternary, security = none>
!ct = !ckks.ciphertext
builtin.module attributes {ckks.parameters = #p} {
  // expected-error@+1 {{found @deep with 2 rescales in a row, expected at most 1, the levels of ckks.parameters: leave those out for ckks-select-parameters to find, or multiply in fewer steps}}
  func.func @deep(%x: !ct) -> !ct {
    %a = ckks.rescale %x : !ct -> !ct
    %b = ckks.rescale %a : !ct -> !ct
    func.return %b : !ct
  }
}

// -----

!ct = !ckks.ciphertext
// expected-error@+1 {{found a ciphertext at level 1, expected 2 or more, as its users and their results have it: leave the level out for the pass to find}}
func.func @too_low(%x: !ckks.ciphertext<level = 1>) -> !ct {
  %a = ckks.rescale %x : !ckks.ciphertext<level = 1> -> !ct
  %b = ckks.rescale %a : !ct -> !ct
  func.return %b : !ct
}

// -----

!ct = !ckks.ciphertext
func.func @up(%x: !ckks.ciphertext<level = 1>, %y: !ckks.ciphertext<level = 2>) -> !ct {
  // expected-error@+1 {{found ckks.mod_switch to a level 1 above its operand's, expected one that is not above: dropped primes do not come back}}
  %a = ckks.mod_switch %x : !ckks.ciphertext<level = 1> -> !ct
  %b = ckks.mul %y, %a : (!ckks.ciphertext<level = 2>, !ct) -> !ct
  func.return %b : !ct
}

// -----

!ct = !ckks.ciphertext
!pt = !ckks.plaintext
func.func @one_plaintext_two_levels(%x: !ct, %p: !pt) -> !ct {
  %a = ckks.mul_plain %x, %p : (!ct, !pt) -> !ct
  %b = ckks.rescale %a : !ct -> !ct
  // expected-error@+1 {{found a plaintext from outside that is used as !ckks.plaintext<level = 0, form = evaluation> and as !ckks.plaintext<level = 1, form = evaluation>, expected one of them: bring in another for each, or a vector for ckks.encode}}
  %c = ckks.add_plain %b, %p : !ct, !pt
  func.return %c : !ct
}

// -----

!ct = !ckks.ciphertext
func.func @wrong_plaintext(%x: !ct, %p: !ckks.plaintext<level = 3>) -> !ct {
  // expected-error@+1 {{found ckks.add_plain with a plaintext of type !ckks.plaintext<level = 3>, expected !ckks.plaintext<level = 0, form = evaluation>: leave its level out for the pass to find}}
  %a = ckks.add_plain %x, %p : !ct, !ckks.plaintext<level = 3>
  func.return %a : !ct
}

// -----

!ct = !ckks.ciphertext
!pt = !ckks.plaintext
func.func private @make() -> !pt
func.func @called(%x: !ct) -> !ct {
  // expected-error@+1 {{found func.call with a plaintext, expected plaintexts from ckks.encode, arguments, materials and what hands them on, as those of dist do: their users say their level and scale}}
  %q = func.call @make() : () -> !pt
  %a = ckks.add_plain %x, %q : !ct, !pt
  func.return %a : !ct
}

// -----

!ct = !ckks.ciphertext
!pt = !ckks.plaintext
func.func @passed_on(%x: !ct, %p: !pt, %device: !mem.device) -> (!ct, !ct) {
  %y = ckks.rescale %x : !ct -> !ct
  %q = mem.transfer %p to %device : !pt
  %a = ckks.add_plain %x, %q : !ct, !pt
  // expected-error@+1 {{found a plaintext from mem.transfer that is used as !ckks.plaintext<level = 1, form = evaluation> and as !ckks.plaintext<level = 0, form = evaluation>, expected one of them: hand on another for each, or the vector, and encode it behind}}
  %b = ckks.add_plain %y, %q : !ct, !pt
  func.return %a, %b : !ct, !ct
}

// -----

// Of a plaintext that nothing uses.
!ct = !ckks.ciphertext
func.func @decrypted(%x: !ct, %secret: !ckks.client_key<secret>) {
  // expected-error@+1 {{found ckks.decrypt with a plaintext of type !ckks.plaintext<level = 3>, expected !ckks.plaintext<level = 0, form = evaluation>: leave its level out for the pass to find}}
  %p = ckks.decrypt %x with %secret : !ct -> !ckks.plaintext<level = 3>
  func.return
}
