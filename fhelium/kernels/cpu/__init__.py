"""Kernels for the host's CPU, generated as IR in xDSL's `llvm` dialect.

In the order in which a kernel comes to life: `builder` writes IR, `residues` is exact arithmetic
on vectors of float64 with bounds that are tracked as it is written, `transforms`, `elementwise`,
`products`, `conversion` and `gather` build one kernel each, `catalogue` names them, `compiler`
makes machine code of them and `cache` keeps it, `launch` calls it, and `operations` is the same
functions on tensors as the reference kernels beside this folder.
"""
