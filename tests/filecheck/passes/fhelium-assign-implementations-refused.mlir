// RUN: %opt %s -p 'fhelium-assign-implementations{target=torch}' --verify-diagnostics
// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations{target=torch value="theirs"}' 2>&1 | filecheck %s --check-prefix=THEIRS
// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations' 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations{target=torch implementation="a"}' 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations{op="rns.negate" implementation=""}' 2>&1 | filecheck %s --check-prefix=EMPTY
// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations{implementation="a"}' 2>&1 | filecheck %s --check-prefix=ALONE
// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations{target=gpu}' 2>&1 | filecheck %s --check-prefix=FAMILY
// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations{op="rns.negat" implementation="a"}' 2>&1 | filecheck %s --check-prefix=OP
// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations{op="zzz" implementation="a"}' 2>&1 | filecheck %s --check-prefix=NO-OP
// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations{value="tota" implementation="a"}' 2>&1 | filecheck %s --check-prefix=VALUE
// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations{value="same" implementation="a"}' 2>&1 | filecheck %s --check-prefix=SEVERAL
// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations{target=torch op="test.op"}' 2>&1 | filecheck %s --check-prefix=LACKS
// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations{target=torch value="other"}' 2>&1 | filecheck %s --check-prefix=LACKS
// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations{target=torch only="rns.ntt","rns.zzz"}' 2>&1 | filecheck %s --check-prefix=ONLY
// RUN: not fhelium-opt %s -p 'fhelium-assign-implementations{op="rns.negate" implementation="a" only="rns.negate"}' 2>&1 | filecheck %s --check-prefix=NO-TARGET

// ONLY:      error: pass 'fhelium-assign-implementations': found only=rns.zzz, expected target= beside it, and ops that the family has
// NO-TARGET: error: pass 'fhelium-assign-implementations': found only=rns.negate, expected target= beside it, and ops that the family has
// NONE:    error: pass 'fhelium-assign-implementations': expected one of target=FAMILY and implementation=NAME, and not both
// EMPTY:   error: pass 'fhelium-assign-implementations': found an empty implementation name, expected a name
// ALONE:   error: pass 'fhelium-assign-implementations': found implementation= alone, expected op=NAME or value=NAME beside it
// FAMILY:  error: pass 'fhelium-assign-implementations': found target=gpu, expected one of cpu, torch
// OP:      error: pass fhelium-assign-implementations: found no op rns.negat in the program: did you mean rns.negate?
// NO-OP:   error: pass fhelium-assign-implementations: found no op zzz in the program{{$}}
// THEIRS:  error: pass fhelium-assign-implementations: rns.negate records fhelium.implementation = "theirs", expected none or "torch-rns-negate": drop the assignment, or say overwrite=true
// VALUE:   error: pass fhelium-assign-implementations: found no value %tota in the program: did you mean %total?
// SEVERAL: refused.mlir:43:11: error: pass fhelium-assign-implementations: found 2 values %same, expected one: rename them apart, or narrow the choice down with op=NAME
// LACKS:   refused.mlir:37:12: error: pass fhelium-assign-implementations: found test.op, expected an op that the family torch has: name an implementation for it, or leave it out

!p = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>

func.func @main(%x: !p) -> !p {
  // What is recorded already and agrees is kept.
  %same = rns.negate %x {fhelium.implementation = "torch-rns-negate"} : !p
  // expected-error@+1 {{pass fhelium-assign-implementations: rns.negate records fhelium.implementation = "cpu-rns-negate", expected none or "torch-rns-negate": drop the assignment, or say overwrite=true}}
  %total = rns.negate %same {fhelium.implementation = "cpu-rns-negate"} : !p
  %other = "test.op"(%total) : (!p) -> !p
  func.return %other : !p
}

func.func @same(%x: !p) -> !p {
  %theirs = rns.negate %x {fhelium.implementation = "theirs"} : !p
  %same = rns.negate %theirs : !p
  func.return %same : !p
}
