// RUN: not fhelium-opt %s -t 'kernel{kernel=fft}' 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not fhelium-opt %s -t 'kernel{kernel=ntt}' 2>&1 | filecheck %s --check-prefix=SIZES
// RUN: not fhelium-opt %s -t 'kernel{kernel=add form=c}' 2>&1 | filecheck %s --check-prefix=FORM

module {}

// NAME:  error: target kernel: found kernel fft, expected one of ntt, intt, add,
// SIZES: error: target kernel: found 0 sizes, which the kernel ntt does not take: see fhelium.kernels.cpu.catalogue
// FORM:  error: target kernel: found form c, expected one of mlir, llvm, optimized, assembly
