// REQUIRES: x86_64
// RUN: %opt %s -t 'kernel{kernel=ntt sizes=4096 width=4 form=assembly cpu=haswell}' | filecheck %s --check-prefix=YMM
// RUN: %opt %s -t 'kernel{kernel=multiply sizes=2,2 width=4 form=assembly cpu=haswell}' | filecheck %s --check-prefix=YMM
// RUN: %opt %s -t 'kernel{kernel=weighted_sum sizes=2,4 width=8 form=assembly cpu=skylake-avx512}' | filecheck %s --check-prefix=ZMM
// RUN: %opt %s -t 'kernel{kernel=add width=1 form=assembly cpu=haswell}' | filecheck %s --check-prefix=SCALAR

module {}

// Rounding and fused products are single instructions, and no loop calls anything.
// YMM-NOT:    {{[[:space:]]call}}
// YMM:        {{vfn?m(add|sub)[0-9]+pd.*%ymm}}
// YMM-NOT:    {{[[:space:]]call}}
// YMM:        {{vroundpd.*%ymm}}
// YMM-NOT:    {{[[:space:]]call}}
// YMM:        {{(ntt|multiply)_share:}}
// YMM:        omp_get_num_threads

// ZMM-NOT:    {{[[:space:]]call}}
// ZMM:        {{vfn?m(add|sub)[0-9]+pd.*%zmm}}
// ZMM-NOT:    {{[[:space:]]call}}
// ZMM:        {{vrndscalepd.*%zmm}}
// ZMM-NOT:    {{[[:space:]]call}}
// ZMM:        weighted_sum_share:

// SCALAR:     add:
// SCALAR-NOT: {{%[xyz]mm.*%[yz]mm}}
// SCALAR:     add_share:
