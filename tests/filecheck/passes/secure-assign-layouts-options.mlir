// RUN: not %opt %s -p secure-assign-layouts{slots=3000} 2>&1 | filecheck %s
// RUN: not %opt %s -p secure-assign-layouts{batch=0} 2>&1 | filecheck %s --check-prefix=BATCH

// CHECK: error: pass 'secure-assign-layouts': found slots=3000, expected a power of two, at most 1048576
// BATCH: error: pass 'secure-assign-layouts': found batch=0, expected a power of two, at most 1048576
