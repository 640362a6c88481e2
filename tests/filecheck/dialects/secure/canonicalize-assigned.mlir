// RUN: %opt %s -p canonicalize | filecheck %s

// Ops that record how they run stay, whether an identity would replace them, drop them, or do
// without them.

!t = !secure.tensor<4>

// CHECK-LABEL: func.func @outer
// CHECK-NEXT:  %a = secure.negate %x
// CHECK-NEXT:  %b = secure.negate %a {fhelium.implementation = "mine"}
// CHECK-NEXT:  %c = secure.rotate %x by 4 {fhelium.implementation = "mine"}
// CHECK-NEXT:  func.return %b, %c
func.func @outer(%x: !t) -> (!t, !t) {
  %a = secure.negate %x : !t
  %b = secure.negate %a {fhelium.implementation = "mine"} : !t
  %c = secure.rotate %x by 4 {fhelium.implementation = "mine"} : !t
  func.return %b, %c : !t, !t
}

// CHECK-LABEL: func.func @inner
// CHECK-NEXT:  %a = secure.negate %x {fhelium.implementation = "mine"}
// CHECK-NEXT:  %b = secure.negate %a
// CHECK-NEXT:  %c = secure.add %y, %a
// CHECK-NEXT:  %d = secure.sub %y, %a
// CHECK-NEXT:  func.return %b, %c, %d
func.func @inner(%x: !t, %y: !t) -> (!t, !t, !t) {
  %a = secure.negate %x {fhelium.implementation = "mine"} : !t
  %b = secure.negate %a : !t
  %c = secure.add %y, %a : !t, !t
  %d = secure.sub %y, %a : !t, !t
  func.return %b, %c, %d : !t, !t, !t
}
