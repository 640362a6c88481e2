// RUN: not fhelium-opt %s -p convert-ckks-to-rsn 2>&1 | filecheck %s --check-prefix=PASS
// RUN: not fhelium-opt %s -p zzzzzzzz 2>&1 | filecheck %s --check-prefix=NOTHING-LIKE
// RUN: not fhelium-opt %s -p dead-code 2>&1 | filecheck %s --check-prefix=FAR
// RUN: not fhelium-opt %s -p fhelium-assign-implementations{targt=torch} 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not fhelium-opt %s -p cse{fast} 2>&1 | filecheck %s --check-prefix=NO-OPTIONS
// RUN: not fhelium-opt %s -p fhelium-assign-implementations{target=3} 2>&1 | filecheck %s --check-prefix=TYPE
// RUN: not fhelium-opt %s -p apply-individual-rewrite 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not fhelium-opt %s -p 'cse,,dce' 2>&1 | filecheck %s --check-prefix=PIPELINE
// RUN: not fhelium-opt %s -p 'cse{' 2>&1 | filecheck %s --check-prefix=BRACE
// RUN: not fhelium-opt %s -t fhelium-mlr 2>&1 | filecheck %s --check-prefix=TARGET
// RUN: not fhelium-opt %s -t fhelium-mlir{alias=false} 2>&1 | filecheck %s --check-prefix=TARGET-OPTION
// RUN: not fhelium-opt %s -t cost,svg 2>&1 | filecheck %s --check-prefix=TWO-TARGETS
// RUN: not fhelium-opt %s -t "" 2>&1 | filecheck %s --check-prefix=NO-TARGET
// RUN: not fhelium-opt %s -t 'cost{trips=1 trips=2}' 2>&1 | filecheck %s --check-prefix=REPEATED
// RUN: not fhelium-opt %s -f mlr 2>&1 | filecheck %s --check-prefix=FRONTEND

// One line each.

// PASS:               fhelium-opt: error: unknown pass 'convert-ckks-to-rsn': did you mean 'convert-ckks-to-rns'?
// PASS-NOT:           {{.}}
// NOTHING-LIKE:       fhelium-opt: error: unknown pass 'zzzzzzzz'; see --help for those there are
// FAR:                fhelium-opt: error: unknown pass 'dead-code'; see --help for those there are
// OPTION:             fhelium-opt: error: pass 'fhelium-assign-implementations' has no option 'targt': did you mean 'target'?
// OPTION-NOT:         {{.}}
// NO-OPTIONS:         fhelium-opt: error: pass 'cse' has no options, found 'fast'
// TYPE:               fhelium-opt: error: option 'target' of pass 'fhelium-assign-implementations': found 3, expected str|None
// TYPE-NOT:           {{.}}
// MISSING:            fhelium-opt: error: pass 'apply-individual-rewrite' needs the option
// PIPELINE:           fhelium-opt: error: in the pass pipeline 'cse,,dce': at column 5 expected pass name
// PIPELINE-NOT:       {{.}}
// BRACE:              fhelium-opt: error: in the pass pipeline 'cse{': at column 5 expected argument name
// TARGET:             fhelium-opt: error: unknown target 'fhelium-mlr': did you mean 'fhelium-mlir'?
// TARGET-NOT:         {{.}}
// TARGET-OPTION:      fhelium-opt: error: target 'fhelium-mlir' has no option 'alias': did you mean 'aliases'?
// TWO-TARGETS:        fhelium-opt: error: found 2 targets in 'cost,svg', expected one at a time: run once for each
// TWO-TARGETS-NOT:    {{.}}
// NO-TARGET:          fhelium-opt: error: found 0 targets in '', expected one at a time
// REPEATED:           fhelium-opt: error: found the option 'trips' of 'cost' twice, expected it once
// FRONTEND:           fhelium-opt: error: unknown frontend 'mlr': did you mean 'mlir'?
