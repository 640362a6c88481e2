// RUN: %opt %s -p canonicalize | filecheck %s

!x = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>

// The key of the sum is named above, and in use: one rotation does for two.
// CHECK-LABEL: @merged
// CHECK-NEXT: %five = fhelium.resource @five
// CHECK-NEXT: %[[other:.*]] = ckks.rotate %y by 5 with %five
// CHECK-NEXT: %[[rotated:.*]] = ckks.rotate %x by 5 with %five
// CHECK-NEXT: func.return %[[rotated]], %[[other]]
func.func @merged(%x: !x, %y: !x) -> (!x, !x) {
  %two = fhelium.resource @two : !ckks.key<rotation, 2>
  %three = fhelium.resource @three : !ckks.key<rotation, 3>
  %five = fhelium.resource @five : !ckks.key<rotation, 5>
  %c = ckks.rotate %y by 5 with %five : !x, !ckks.key<rotation, 5>
  %a = ckks.rotate %x by 2 with %two : !x, !ckks.key<rotation, 2>
  %b = ckks.rotate %a by 3 with %three : !x, !ckks.key<rotation, 3>
  func.return %b, %c : !x, !x
}

// No key is asked for that the program does not name, nor one that comes later.
// CHECK-LABEL: @no_key
// CHECK: ckks.rotate %x by 2
// CHECK-NEXT: ckks.rotate %{{.*}} by 3
func.func @no_key(%x: !x) -> (!x, !x) {
  %two = fhelium.resource @two : !ckks.key<rotation, 2>
  %three = fhelium.resource @three : !ckks.key<rotation, 3>
  %a = ckks.rotate %x by 2 with %two : !x, !ckks.key<rotation, 2>
  %b = ckks.rotate %a by 3 with %three : !x, !ckks.key<rotation, 3>
  %five = fhelium.resource @five : !ckks.key<rotation, 5>
  %c = ckks.rotate %x by 5 with %five : !x, !ckks.key<rotation, 5>
  func.return %b, %c : !x, !x
}

// Opposite steps cancel, and so do two conjugations.
// CHECK-LABEL: @cancelled
// CHECK-NEXT: func.return %x, %x
func.func @cancelled(%x: !x) -> (!x, !x) {
  %left = fhelium.resource @left : !ckks.key<rotation, 2>
  %right = fhelium.resource @right : !ckks.key<rotation, -2>
  %key = fhelium.resource @key : !ckks.key<conjugation>
  %a = ckks.rotate %x by 2 with %left : !x, !ckks.key<rotation, 2>
  %b = ckks.rotate %a by -2 with %right : !x, !ckks.key<rotation, -2>
  %c = ckks.conjugate %x with %key : !x
  %d = ckks.conjugate %c with %key : !x
  func.return %b, %d : !x, !x
}

// CHECK-LABEL: @assigned
// CHECK-COUNT-2: by 2 with
func.func @assigned(%x: !x) -> (!x, !x) {
  %two = fhelium.resource @two : !ckks.key<rotation, 2>
  %four = fhelium.resource @four : !ckks.key<rotation, 4>
  %c = ckks.rotate %x by 4 with %four : !x, !ckks.key<rotation, 4>
  %a = ckks.rotate %x by 2 with %two : !x, !ckks.key<rotation, 2>
  %b = ckks.rotate %a by 2 with %two {fhelium.implementation = "mine"} : !x, !ckks.key<rotation, 2>
  func.return %b, %c : !x, !x
}
