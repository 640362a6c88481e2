// RUN: %opt %s --split-input-file --verify-diagnostics -p 'ckks-decompose-rotations{steps=2,4}'
// RUN: not %opt %s --split-input-file -p ckks-decompose-rotations 2>&1 | filecheck %s --check-prefix=SLOTS
// RUN: not %opt %s --split-input-file -p 'ckks-decompose-rotations{steps=0}' 2>&1 | filecheck %s --check-prefix=ZERO

// SLOTS: error: pass ckks-decompose-rotations: found no ckks.parameters that say how many slots there are, expected those or steps=..: which steps there are keys for
// ZERO: error: pass 'ckks-decompose-rotations': found steps=0, expected at least one, each from 1 to 65535 or negative: to the left, or to the right

!ct = !ckks.ciphertext
!k3 = !ckks.key<rotation, 3>
func.func @odd(%x: !ct, %k3: !k3) -> !ct {
  // expected-error@+1 {{found a rotation by 3, expected one that rotations by 2, 4 make up: add a step to steps=}}
  %a = ckks.rotate %x by 3 with %k3 : !ct, !k3
  func.return %a : !ct
}

// -----

!ct = !ckks.ciphertext
!far = !ckks.key<rotation, 1000000000>
// expected-error@+1 {{found a rotation by 1000000000 places in @far, expected fewer than 65536, the slots of the largest ring: with ckks.parameters steps count modulo the slots}}
func.func @far(%x: !ct, %far: !far) -> !ct {
  %a = ckks.rotate %x by 1000000000 with %far : !ct, !far
  func.return %a : !ct
}

// -----

#p = #ckks.parameters<ring_degree = 8, moduli = [[97]], special = [193], digits = 1,
                      scale = 2^5, secret = ternary, security = none>
// expected-error@+1 {{found 4 among steps, expected steps less than the 4 slots}}
builtin.module attributes {ckks.parameters = #p} {
}
