// RUN: %opt %s -p ckks-hoist-rotations | filecheck %s
// RUN: %opt %s -p ckks-hoist-rotations --print-debuginfo | filecheck %s --check-prefix=LOC

!ct = !ckks.ciphertext
!k1 = !ckks.key<rotation, 1>
!k2 = !ckks.key<rotation, 2>

// CHECK-LABEL: func.func @two
// CHECK-NEXT:    %k1 = fhelium.resource @rotation_1
// CHECK-NEXT:    %k2 = fhelium.resource @rotation_2
// CHECK-NEXT:    %a, %b = ckks.rotate_many %x by [1, 2] with %k1, %k2 : (!ct, !ckks.key<rotation, 1>, !ckks.key<rotation, 2>) -> (!ct, !ct)
// CHECK-NEXT:    %c = ckks.add %a, %b
// CHECK-NEXT:    %d = ckks.add %c, %a
// LOC: ckks.rotate_many {{.*}} loc("{{.*}}ckks-hoist-rotations.mlir":[[# @LINE + 3]]:
func.func @two(%x: !ct) -> !ct {
  %k1 = fhelium.resource @rotation_1 : !k1
  %a = ckks.rotate %x by 1 with %k1 : !ct, !k1
  %k2 = fhelium.resource @rotation_2 : !k2
  %b = ckks.rotate %x by 2 with %k2 : !ct, !k2
  %c = ckks.add %a, %b : !ct
  %again = ckks.rotate %x by 1 with %k1 : !ct, !k1
  %d = ckks.add %c, %again : !ct
  func.return %d : !ct
}

// One rotation of each of two values, another block, and an op that records how it runs.
// CHECK-LABEL: func.func @alone
// CHECK-NOT:     rotate_many
// CHECK:         func.return
func.func @alone(%x: !ct, %y: !ct, %c: i1) -> (!ct, !ct, !ct) {
  %k1 = fhelium.resource @rotation_1 : !k1
  %k2 = fhelium.resource @rotation_2 : !k2
  %a = ckks.rotate %x by 1 with %k1 : !ct, !k1
  %b = ckks.rotate %y by 2 with %k2 : !ct, !k2
  %d = ckks.rotate %x by 2 with %k2 {fhelium.implementation = "mine"} : !ct, !k2
  %e = scf.if %c -> (!ct) {
    %f = ckks.rotate %x by 2 with %k2 : !ct, !k2
    scf.yield %f : !ct
  } else {
    scf.yield %d : !ct
  }
  func.return %a, %b, %e : !ct, !ct, !ct
}

// Of two keys for one step, as on two devices, each rotation keeps its own.
// CHECK-LABEL: func.func @own_keys
// CHECK:         ckks.rotate_many %x by [1, 2] with %far1, %far2
// CHECK:         ckks.rotate_many %y by [1, 2] with %near1, %near2
func.func @own_keys(%x: !ct, %y: !ct) -> (!ct, !ct, !ct, !ct) {
  %near1 = fhelium.resource @near_1 : !k1
  %near2 = fhelium.resource @near_2 : !k2
  %far1 = fhelium.resource @far_1 : !k1
  %a = ckks.rotate %x by 1 with %far1 : !ct, !k1
  %far2 = fhelium.resource @far_2 : !k2
  %b = ckks.rotate %x by 2 with %far2 : !ct, !k2
  %c = ckks.rotate %y by 1 with %near1 : !ct, !k1
  %d = ckks.rotate %y by 2 with %near2 : !ct, !k2
  func.return %a, %b, %c, %d : !ct, !ct, !ct, !ct
}
