// RUN: %opt %s -t 'kernel{kernel=fused sizes=3,2,2,1,6,3,0,2,0,3,1,2,4,0,6,5,0,5,6,1,1,7,1,8 width=4}' | filecheck %s
// RUN: not fhelium-opt %s -t 'kernel{kernel=fused sizes=1,2,3,0,0,0 width=4}' 2>&1 | filecheck %s --check-prefix=WORDS
// RUN: not fhelium-opt %s -t 'kernel{kernel=fused sizes=1,2,1,0,0,1,1 width=4}' 2>&1 | filecheck %s --check-prefix=VALUES
// RUN: not fhelium-opt %s -t 'kernel{kernel=fused sizes=1,2,1,5,0,9,1 width=4}' 2>&1 | filecheck %s --check-prefix=NUMBER
// RUN: not fhelium-opt %s -t 'kernel{kernel=fused sizes=1,32,4,4,0,0,4,0,0,4,0,0,4,0,0,4 width=4}' 2>&1 | filecheck %s --check-prefix=LARGE

module {}

// Inputs of 2, 2 and 1 components; then x p, + y, negate, times a constant, + a constant, - y.
// Behind the pointers comes the loop over the words: each of the 5 components is loaded once, and
// the 2 of the result are stored.
// CHECK:      llvm.func @fused(
// CHECK:      llvm.icmp "slt"
// CHECK:      llvm.icmp "slt"
// CHECK:      llvm.load {{.*}} -> vector<4xi64>
// CHECK:      llvm.load {{.*}} -> vector<4xi64>
// CHECK:      llvm.load {{.*}} -> vector<4xi64>
// CHECK:      llvm.load {{.*}} -> vector<4xi64>
// CHECK:      llvm.load {{.*}} -> vector<4xi64>
// CHECK-NOT:  llvm.load
// CHECK-NOT:  llvm.store
// CHECK-NOT:  llvm.call @
// CHECK:      llvm.intr.fma
// CHECK-NOT:  llvm.load
// CHECK-NOT:  llvm.call @
// CHECK:      llvm.store {{.*}} : vector<4xi64>, !llvm.ptr
// CHECK-NOT:  llvm.load
// CHECK:      llvm.store {{.*}} : vector<4xi64>, !llvm.ptr
// CHECK-NEXT: llvm.add
// CHECK-NEXT: llvm.br
// CHECK:      llvm.func @fused_share

// WORDS:  error: target kernel: found 6 sizes, expected inputs, the components of each, steps, three words for each, and results: write the number of inputs, and that of steps, before them
// VALUES: error: target kernel: found a step ADD 0 1 that makes value 1, expected values below 1: name inputs or values of earlier steps
// NUMBER: error: target kernel: found the number 9 in a step ADD_CONSTANT, expected one below that of steps, 1: count constants and permutations from 0, and write 0 where there is none
// LARGE:  error: target kernel: found 284 values of one component, expected at most 256: cut the kernel
