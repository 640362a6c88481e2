// RUN: not fhelium-opt %s -t 'kernel{kernel=fft}' 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not fhelium-opt %s -t 'kernel{kernel=add form=c}' 2>&1 | filecheck %s --check-prefix=FORM
// RUN: not fhelium-opt %s -t 'kernel{kernel=divide sizes=64}' 2>&1 | filecheck %s --check-prefix=SIZES
// RUN: not fhelium-opt %s -t 'kernel{kernel=add sizes=1}' 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not fhelium-opt %s -t 'kernel{kernel=intt sizes=100 width=4}' 2>&1 | filecheck %s --check-prefix=DEGREE
// RUN: not fhelium-opt %s -t 'kernel{kernel=multiply sizes=2,1000000}' 2>&1 | filecheck %s --check-prefix=RANGE
// RUN: not fhelium-opt %s -t 'kernel{kernel=gather width=0}' 2>&1 | filecheck %s --check-prefix=WIDTH
// RUN: not fhelium-opt %s -t 'kernel{kernel=ntt sizes=8 width=8}' 2>&1 | filecheck %s --check-prefix=SMALL
// RUN: not fhelium-opt %s -t 'kernel{kernel=add sizes=a}' 2>&1 | filecheck %s --check-prefix=LETTER
// RUN: not fhelium-opt %s -t 'kernel{kernel=add form=assembly cpu=hasty width=1}' 2>&1 | filecheck %s --check-prefix=CPU

module {}

// NAME:      error: target kernel: found kernel fft, expected one of ntt, intt, add,
// NAME-SAME: : name one with kernel=NAME
// FORM:      error: target kernel: found form c, expected one of mlir, llvm, optimized, assembly: choose one with form=

// SIZES:     error: target kernel: found 1 sizes, expected 2 for the kernel divide: write sizes=DEGREE,SOURCES
// NONE:      error: target kernel: found 1 sizes, expected 0 for the kernel add: leave sizes out
// DEGREE:    error: target kernel: found 100 for the degree of the kernel intt, expected a power of two from 16 to 1048576 for vectors of 4: write sizes=DEGREE
// RANGE:     error: target kernel: found 1000000 for the second of the kernel multiply, expected a number from 1 to 32: write sizes=FIRST,SECOND

// WIDTH:     error: target kernel: found vectors of 0 words, expected one of 1, 2, 4, 8: choose another width
// SMALL:     error: target kernel: found 8 for the degree of the kernel ntt, expected a power of two from 32 to 1048576 for vectors of 8: write sizes=DEGREE or a smaller width=
// LETTER:    option 'sizes' of target 'kernel': found 'a', expected integers separated by commas
// CPU:       error: target kernel: found cpu hasty, expected one of
// CPU-SAME:  : name one with cpu=NAME
