// REQUIRES: x86_64
// RUN: %opt %s -t 'kernel{kernel=gather width=8 form=assembly cpu=haswell}' | filecheck %s --check-prefix=SHUFFLE
// RUN: %opt %s -t 'kernel{kernel=gather width=4 form=assembly cpu=haswell}' | filecheck %s --check-prefix=WORDS
// RUN: %opt %s -t 'kernel{kernel=key_switch sizes=64,2,1,2,4 width=8 form=assembly cpu=skylake-avx512}' | filecheck %s --check-prefix=SWITCH
// RUN: %opt %s -t 'kernel{kernel=divide sizes=64,2 width=4}' | filecheck %s --check-prefix=DIVIDE

module {}

// An automorphism moves aligned vectors of 8 words: one load and one shuffle for each.
// SHUFFLE:     gather:
// SHUFFLE-NOT: {{[[:space:]]call}}
// SHUFFLE:     vpermpd{{.*}}%zmm
// SHUFFLE:     gather_share:

// WORDS:       gather:
// WORDS-NOT:   zmm
// WORDS:       vmovlhps
// WORDS:       gather_share:

// Key switching converts, transforms, permutes and multiplies in one kernel, and asks for the key
// before it is needed.
// SWITCH:      key_switch:
// SWITCH-NOT:  {{[[:space:]]call}}
// SWITCH:      vrndscalepd{{.*}}%zmm
// SWITCH-NOT:  {{[[:space:]]call}}
// SWITCH:      prefetch
// SWITCH-NOT:  {{[[:space:]]call}}
// SWITCH:      key_switch_share:

// A division converts y and -v as the first level of its transform loads: no int64 is read there.
// DIVIDE:      llvm.func @divide
// DIVIDE-NOT:  -> vector<4xi64>
// DIVIDE:      llvm.load {{.*}} -> vector<4xf64>
// DIVIDE-NEXT: llvm.fmul
// DIVIDE:      llvm.shufflevector
// DIVIDE:      llvm.load {{.*}} -> vector<4xi64>
// DIVIDE:      llvm.func @divide_share
