// RUN: not fhelium-opt %s 2>&1 | filecheck %s --check-prefix=PARSE
// RUN: not fhelium-opt %s --verify-diagnostics 2>&1 | filecheck %s --check-prefix=PARSE
// RUN: not fhelium-opt %s --split-input-file --parsing-diagnostics 2>&1 | filecheck %s --check-prefix=VERIFY
// RUN: fhelium-opt %s --parsing-diagnostics | filecheck %s --check-prefix=PARSE

// Errors give 1 and no output, unless the options ask for them as output.

// PARSE:      {{.*}}exit-codes.mlir:15:1: error: found operation 'nothing', which is not registered
// PARSE-NEXT: nothing
// PARSE-NEXT: ^^^^^^^
// PARSE-NOT:  {{.}}

// VERIFY-NOT: nothing
// VERIFY:     {{.*}}exit-codes.mlir:19:6: error: 'arith.addi'
nothing

// -----
%0 = "test.op"() : () -> i32
%1 = "arith.addi"(%0, %0) : (i32, i32) -> i64
