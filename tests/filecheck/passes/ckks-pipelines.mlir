// RUN: %opt %s -p ckks-default | filecheck %s --check-prefixes=CHECK,DEFAULT
// RUN: %opt %s -p ckks-lazy | filecheck %s --check-prefixes=CHECK,LAZY
// RUN: %opt %s -p 'ckks-lazy,canonicalize,cse,convert-ckks-to-rns' | filecheck %s --check-prefix=LOWERED
// RUN: not %opt %s -p 'ckks-lazy{precision=3}' 2>&1 | filecheck %s --check-prefix=OPTIONS
// RUN: not %opt %s -p ckks-defualt 2>&1 | filecheck %s --check-prefix=MISSPELLED

// OPTIONS: error: pipeline 'ckks-lazy' has no options: write out its passes, canonicalize,cse,ckks-merge-rotations,{{.*}}, and give options to those
// MISSPELLED: error: unknown pass 'ckks-defualt': did you mean 'ckks-default'?

// A dot product of two terms, and a rotation of it: from no state to all of it.
// CHECK:         #ckks.parameters<ring_degree = 8192,
// CHECK-LABEL: func.func @main
// DEFAULT-COUNT-2: ckks.relinearize
// LAZY-COUNT-1:    ckks.relinearize
// CHECK-NOT:       ckks.relinearize
// CHECK:           ckks.rotate_many %{{.*}} by [1, 2]
// CHECK:           func.return %{{.*}} : !ct_L0_s
// LOWERED:       rns.key_product
!ct = !ckks.ciphertext
!k1 = !ckks.key<rotation, 1>
!k2 = !ckks.key<rotation, 2>
func.func @main(%x: !ct, %y: !ct, %z: !ct, %w: !ct) -> !ct {
  %k1 = fhelium.resource @rotation_1 : !k1
  %k2 = fhelium.resource @rotation_2 : !k2
  %a = ckks.mul %x, %y : (!ct, !ct) -> !ct
  %b = ckks.mul %z, %w : (!ct, !ct) -> !ct
  %c = ckks.add %a, %b : !ct
  %d = ckks.rotate %c by 1 with %k1 : !ct, !k1
  %e = ckks.rotate %c by 2 with %k2 : !ct, !k2
  %f = ckks.add %d, %e : !ct
  func.return %f : !ct
}
