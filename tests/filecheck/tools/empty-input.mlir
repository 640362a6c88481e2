// RUN: %opt %s | filecheck %s
// RUN: %opt /dev/null | filecheck %s
// RUN: cat /dev/null | fhelium-opt - | filecheck %s

// An empty text is an empty module.

// CHECK:      builtin.module {
// CHECK-NEXT: }
