// RUN: %roundtrip
// RUN: %generic-roundtrip
// RUN: %opt %s -p canonicalize,cse,dce | filecheck %s

// Checkpoints stay where they are, and values may live across them.

// CHECK-LABEL: func.func @main
// CHECK:         %sum = arith.addf %x, %x : f64
// CHECK-NEXT:    fhelium.checkpoint "layer 1"
// CHECK-NEXT:    %product = arith.mulf %sum, %x : f64
// CHECK-NEXT:    fhelium.checkpoint "layer 1" {note = 1 : i64}
// CHECK-NEXT:    func.return %product : f64
func.func @main(%x: f64) -> f64 {
  %sum = arith.addf %x, %x : f64
  fhelium.checkpoint "layer 1"
  %product = arith.mulf %sum, %x : f64
  "fhelium.checkpoint"() <{label = "layer 1"}> {note = 1 : i64} : () -> ()
  func.return %product : f64
}
