// RUN: %opt %s -p 'fhelium-assign-implementations{op="rns.negate" implementation="mine" overwrite=true}' | filecheck %s
// RUN: %opt %s -p 'fhelium-assign-implementations{op="rns.negate" implementation="mine" overwrite=true},fhelium-assign-in-place' | filecheck %s
// RUN: %opt %s -p 'fhelium-assign-implementations{op="rns.negate" target=torch overwrite=true}' | filecheck %s --check-prefix=OWN

// What an implementation of no family returns may belong to it, or be its operand.

!p = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>

// Neither its result nor its operand is overwritten; what others make from it is.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:  %a = rns.add %x, %y {fhelium.implementation = "cpu-rns-add"}
// CHECK-NEXT:  %b = rns.negate %a {fhelium.implementation = "mine"}
// CHECK-NEXT:  %c = rns.sub %b, %x {fhelium.implementation = "cpu-rns-sub"}
// CHECK-NEXT:  %d = rns.add %c, %x {fhelium.in_place, fhelium.implementation = "cpu-rns-add"}
// CHECK-NEXT:  %e = rns.mul_constant %a, 3 {fhelium.implementation = "cpu-rns-mul-constant"}
// CHECK-NEXT:  %f = rns.add %e, %b {fhelium.in_place, fhelium.implementation = "cpu-rns-add"}
// OWN-LABEL:   func.func @chain
// OWN:         %c = rns.sub %b, %x {fhelium.in_place, fhelium.implementation = "cpu-rns-sub"}
// OWN:         %e = rns.mul_constant %a, 3 {fhelium.in_place, fhelium.implementation = "cpu-rns-mul-constant"}
func.func @chain(%x: !p, %y: !p) -> (!p, !p) {
  %a = rns.add %x, %y {fhelium.implementation = "cpu-rns-add"} : (!p, !p) -> !p
  %b = rns.negate %a {fhelium.implementation = "cpu-rns-negate"} : !p
  %c = rns.sub %b, %x {fhelium.in_place, fhelium.implementation = "cpu-rns-sub"} : (!p, !p) -> !p
  %d = rns.add %c, %x {fhelium.in_place, fhelium.implementation = "cpu-rns-add"} : (!p, !p) -> !p
  %e = rns.mul_constant %a, 3 {fhelium.in_place, fhelium.implementation = "cpu-rns-mul-constant"} : !p
  %f = rns.add %e, %b {fhelium.in_place, fhelium.implementation = "cpu-rns-add"} : (!p, !p) -> !p
  func.return %d, %f : !p, !p
}

// The op in a region may be what the region takes or yields.
// CHECK-LABEL: func.func @fused
// CHECK:       %d = rns.sub %r, %x {fhelium.implementation = "cpu-rns-sub"}
// CHECK-NEXT:  %e = rns.sub %a, %x {fhelium.implementation = "cpu-rns-sub"}
// CHECK-NEXT:  func.return
func.func @fused(%x: !p) -> (!p, !p) {
  %a = rns.add %x, %x {fhelium.implementation = "cpu-rns-add"} : (!p, !p) -> !p
  %r = rns.fused (%b = %a) : (!p) -> !p attributes {fhelium.implementation = "cpu-rns-fused"} {
    %c = rns.negate %b {fhelium.implementation = "cpu-rns-negate"} : !p
    rns.yield %c : !p
  }
  %d = rns.sub %r, %x {fhelium.in_place, fhelium.implementation = "cpu-rns-sub"} : (!p, !p) -> !p
  %e = rns.sub %a, %x {fhelium.in_place, fhelium.implementation = "cpu-rns-sub"} : (!p, !p) -> !p
  func.return %d, %e : !p, !p
}

// What already ran by an implementation of no family keeps what is written around it.
// CHECK-LABEL: func.func @by_hand
// CHECK:       rns.negate %a {fhelium.in_place, fhelium.implementation = "mine"}
// CHECK-NEXT:  rns.sub %b, %x {fhelium.in_place, fhelium.implementation = "cpu-rns-sub"}
func.func @by_hand(%x: !p) -> !p {
  %a = rns.add %x, %x {fhelium.implementation = "cpu-rns-add"} : (!p, !p) -> !p
  %b = rns.negate %a {fhelium.in_place, fhelium.implementation = "mine"} : !p
  %c = rns.sub %b, %x {fhelium.in_place, fhelium.implementation = "cpu-rns-sub"} : (!p, !p) -> !p
  func.return %c : !p
}
