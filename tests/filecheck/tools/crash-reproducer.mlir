// RUN: not fhelium-opt %s --split-input-file -p 'cse,fhelium-assign-implementations{value=y implementation="mine"},dce' --crash-reproducer %t.mlir 2>&1 | filecheck %s --check-prefix=SAID
// RUN: filecheck %s --input-file %t.mlir
// RUN: not fhelium-opt -p 'cse,fhelium-assign-implementations{value=y implementation="mine"},dce' %t.mlir 2>&1 | filecheck %s --check-prefix=AGAIN
// RUN: fhelium-opt %t.mlir -p cse --crash-reproducer %t.none.mlir
// RUN: not ls %t.none.mlir
// RUN: not fhelium-opt %t.mlir -p 'fhelium-assign-implementations{value=y implementation="mine"}' --crash-reproducer %t.no/such.mlir 2>&1 | filecheck %s --check-prefix=UNWRITTEN

// A pass that fails leaves the program as it was before the first one, and how to fail again.

// SAID:      fhelium-opt: wrote a reproducer; run: fhelium-opt -p '{{.*}}' {{.*}}crash-reproducer.mlir.tmp.mlir
// SAID-NEXT: {{.*}}error: pass fhelium-assign-implementations

// CHECK:      // Reproducer of a failure of the pass fhelium-assign-implementations. Run:
// CHECK-NEXT: //   fhelium-opt -p 'cse,fhelium-assign-implementations{value="y" implementation="mine"},dce' {{.*}}
// CHECK-NEXT: // What happened:
// CHECK-NEXT: //   {{.*}}crash-reproducer.mlir:[[#]]:6: error: pass fhelium-assign-implementations: {{.*}}
// CHECK-NEXT: // Versions: fhelium {{.*}}, xdsl {{.*}}, torch {{.*}}, python {{.*}}
// CHECK-NOT:  %x
// CHECK:      %y = "test.op"() {fhelium.implementation = "theirs"} : () -> i32

// AGAIN:      crash-reproducer.mlir.tmp.mlir:[[#]]:8: error: pass fhelium-assign-implementations

// UNWRITTEN:      fhelium-opt: no reproducer was written: cannot write '{{.*}}such.mlir': No such file or directory
// UNWRITTEN-NEXT: error: pass fhelium-assign-implementations
%x = "test.op"() : () -> i32
%y = "test.op"(%x) : (i32) -> i32
// -----
%y = "test.op"() {fhelium.implementation = "theirs"} : () -> i32
