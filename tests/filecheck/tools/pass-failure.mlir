// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations{value=y implementation="mine"}' 2>&1 | filecheck %s
// RUN: fhelium-opt %s --verify-diagnostics -p 'cse,fhelium-assign-implementations{value=y implementation="mine"}' | filecheck %s

// A pass that refuses is named, at the op that it is about.

// CHECK:      {{.*}}pass-failure.mlir:10:6: error: pass fhelium-assign-implementations: {{.*}}"theirs"
// CHECK-NEXT: %y = "test.op"() {fhelium.implementation = "theirs"} : () -> i32
// CHECK-NEXT:      ^^^^^^^^^
// CHECK-NOT:  {{.}}
%y = "test.op"() {fhelium.implementation = "theirs"} : () -> i32
