// RUN: not fhelium-opt %s --verify-diagnostics --split-input-file 2>&1 | filecheck %s

// CHECK:     {{.*}}mismatch.mlir:7:6: error: unexpected error: 'arith.addi'
// CHECK:     {{.*}}mismatch.mlir:8:73: error: expected error was not produced on line 8: never
// CHECK-NOT: error:
%0 = "test.op"() : () -> i32
%1 = "arith.addi"(%0, %0) : (i32, i32) -> i64
%2 = "arith.addi"(%0, %0) : (i32, i32) -> i64 // expected-error {{i32}} expected-error {{never}}
