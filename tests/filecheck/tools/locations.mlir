// RUN: %opt %s --print-debuginfo | filecheck %s
// RUN: %opt %s --print-debuginfo | fhelium-opt --print-debuginfo | filecheck %s
// RUN: %opt %s -p canonicalize,cse --print-debuginfo --print-op-generic | filecheck %s --check-prefix=GENERIC

// Every op gets the place of its name, every block argument its own, unless the text says loc(...);
// places survive printing, parsing and passes that leave the op alone.

// CHECK:      func.func @f(%a: i32 loc("{{.*}}locations.mlir":15:14), %b: i32 loc("else.mlir":7:8)) -> i32 {
// CHECK-NEXT:   %c = "test.op"(%a, %b) : (i32, i32) -> i32 loc("{{.*}}locations.mlir":16:8)
// CHECK-NEXT:   %d = "test.op"(%c) : (i32) -> i32 loc("else.mlir":1:2)
// CHECK-NEXT:   func.return %d : i32 loc("{{.*}}locations.mlir":18:3)
// CHECK-NEXT: } loc("{{.*}}locations.mlir":15:1)

// GENERIC: "test.op"(%a, %b) : (i32, i32) -> i32 loc("{{.*}}locations.mlir":16:8)
func.func @f(%a: i32, %b: i32 loc("else.mlir":7:8)) -> i32 {
  %c = "test.op"(%a, %b) : (i32, i32) -> i32
  %d = "test.op"(%c) : (i32) -> i32 loc("else.mlir":1:2)
  func.return %d : i32
}
