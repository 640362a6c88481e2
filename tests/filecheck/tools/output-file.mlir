// RUN: rm -rf %t && mkdir %t
// RUN: %opt %s -o %t/out.mlir
// RUN: filecheck %s --input-file=%t/out.mlir
// RUN: cp %t/out.mlir %t/old.mlir
// RUN: not fhelium-opt %s -o %t/out.mlir -p canonicalize,nothing-known
// RUN: echo nonsense > %t/bad.mlir
// RUN: not fhelium-opt %t/bad.mlir -o %t/out.mlir
// RUN: not fhelium-opt %t/bad.mlir -o %t/new.mlir
// RUN: diff %t/out.mlir %t/old.mlir
// RUN: ls %t | filecheck %s --check-prefix=FILES
// RUN: not fhelium-opt %s -o %t/nowhere/out.mlir 2>&1 | filecheck %s --check-prefix=NOWHERE
// RUN: not fhelium-opt %s -o %t 2>&1 | filecheck %s --check-prefix=FOLDER

// The output is written whole or not at all; after an error the old one is still there.

// FILES:      bad.mlir
// FILES-NEXT: old.mlir
// FILES-NEXT: out.mlir
// FILES-NOT:  {{.}}

// NOWHERE:     fhelium-opt: error: cannot write '{{.*}}nowhere/out.mlir': No such file or directory
// NOWHERE-NOT: {{.}}
// FOLDER:      fhelium-opt: error: cannot write '{{.*}}': Is a directory
// FOLDER-NOT:  {{.}}

// CHECK:      builtin.module {
// CHECK-NEXT:   %x = "test.op"() : () -> i32
%x = "test.op"() : () -> i32
