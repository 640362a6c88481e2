// RUN: %opt %s --split-input-file | filecheck %s
// RUN: %opt %s --split-input-file --print-debuginfo | filecheck %s --check-prefix=LINES

// CHECK: {first}
// CHECK: // -----
// CHECK: {second}
"test.op"() {first} : () -> ()

// -----

// A chunk keeps its line numbers in the file.
// LINES: {second} : () -> () loc("{{.*}}split-input-file.mlir":13:1)
"test.op"() {second} : () -> ()
