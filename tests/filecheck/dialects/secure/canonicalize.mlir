// RUN: %opt %s -p canonicalize | filecheck %s

// Each identity, and beside it a neighbour that is none.

// negate(negate(x)) -> x
// CHECK-LABEL: func.func @negate_thrice
// CHECK-NEXT:  %c = secure.negate %x
// CHECK-NEXT:  func.return %c
func.func @negate_thrice(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  %a = secure.negate %x : !secure.tensor<4>
  %b = secure.negate %a : !secure.tensor<4>
  %c = secure.negate %b : !secure.tensor<4>
  func.return %c : !secure.tensor<4>
}

// add(x, negate(y)) -> sub(x, y), and the other way round
// CHECK-LABEL: func.func @add_of_negate
// CHECK-NEXT:  %b = secure.sub %x, %y
// CHECK-NEXT:  %c = secure.sub %x, %y
// CHECK-NEXT:  func.return %b, %c
func.func @add_of_negate(%x: !secure.tensor<4>, %y: !secure.tensor<4>) -> (!secure.tensor<4>, !secure.tensor<4>) {
  %a = secure.negate %y : !secure.tensor<4>
  %b = secure.add %x, %a : !secure.tensor<4>, !secure.tensor<4>
  %c = secure.add %a, %x : !secure.tensor<4>, !secure.tensor<4>
  func.return %b, %c : !secure.tensor<4>, !secure.tensor<4>
}

// A public tensor cannot be the first operand of a difference.
// CHECK-LABEL: func.func @add_public_to_negate
// CHECK-NEXT:  %a = secure.negate %x
// CHECK-NEXT:  %b = secure.add %a, %p
func.func @add_public_to_negate(%x: !secure.tensor<4>, %p: tensor<4xf64>) -> !secure.tensor<4> {
  %a = secure.negate %x : !secure.tensor<4>
  %b = secure.add %a, %p : !secure.tensor<4>, tensor<4xf64>
  func.return %b : !secure.tensor<4>
}

// A recorded implementation stays.
// CHECK-LABEL: func.func @assigned
// CHECK-NEXT:  %a = secure.negate %y
// CHECK-NEXT:  %b = secure.add %x, %a {fhelium.implementation = "mine"}
func.func @assigned(%x: !secure.tensor<4>, %y: !secure.tensor<4>) -> !secure.tensor<4> {
  %a = secure.negate %y : !secure.tensor<4>
  %b = secure.add %x, %a {fhelium.implementation = "mine"} : !secure.tensor<4>, !secure.tensor<4>
  func.return %b : !secure.tensor<4>
}

// sub(x, negate(y)) -> add(x, y); sub(negate(x), y) is none
// CHECK-LABEL: func.func @sub_of_negate
// CHECK-NEXT:  %a = secure.negate %y
// CHECK-NEXT:  %b = secure.add %x, %y
// CHECK-NEXT:  %c = secure.sub %a, %x
func.func @sub_of_negate(%x: !secure.tensor<4>, %y: !secure.tensor<4>) -> (!secure.tensor<4>, !secure.tensor<4>) {
  %a = secure.negate %y : !secure.tensor<4>
  %b = secure.sub %x, %a : !secure.tensor<4>, !secure.tensor<4>
  %c = secure.sub %a, %x : !secure.tensor<4>, !secure.tensor<4>
  func.return %b, %c : !secure.tensor<4>, !secure.tensor<4>
}

// rotate(rotate(x, a), b) -> rotate(x, (a + b) mod n)
// CHECK-LABEL: func.func @rotate_twice
// CHECK-NEXT:  %b = secure.rotate %x by 1 :
// CHECK-NEXT:  func.return %b
func.func @rotate_twice(%x: !secure.tensor<4>) -> !secure.tensor<4> {
  %a = secure.rotate %x by -2 : !secure.tensor<4>
  %b = secure.rotate %a by 7 : !secure.tensor<4>
  func.return %b : !secure.tensor<4>
}

// rotate(x, k n) -> x
// CHECK-LABEL: func.func @rotate_by_whole_turns
// CHECK-NEXT:  %c = secure.rotate %x by 3
// CHECK-NEXT:  func.return %x, %x, %c
func.func @rotate_by_whole_turns(%x: !secure.tensor<4>) -> (!secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>) {
  %a = secure.rotate %x by 0 : !secure.tensor<4>
  %b = secure.rotate %x by -8 : !secure.tensor<4>
  %c = secure.rotate %x by 3 : !secure.tensor<4>
  func.return %a, %b, %c : !secure.tensor<4>, !secure.tensor<4>, !secure.tensor<4>
}

// reshape(reshape(x)) -> reshape(x), and reshape(x) -> x for the type of x
// CHECK-LABEL: func.func @reshape
// CHECK-NEXT:  %b = secure.reshape %x : !secure.tensor<2x6> -> !secure.tensor<3x4>
// CHECK-NEXT:  func.return %b, %x
func.func @reshape(%x: !secure.tensor<2x6>) -> (!secure.tensor<3x4>, !secure.tensor<2x6>) {
  %a = secure.reshape %x : !secure.tensor<2x6> -> !secure.tensor<12>
  %b = secure.reshape %a : !secure.tensor<12> -> !secure.tensor<3x4>
  %c = secure.reshape %a : !secure.tensor<12> -> !secure.tensor<2x6>
  func.return %b, %c : !secure.tensor<3x4>, !secure.tensor<2x6>
}
