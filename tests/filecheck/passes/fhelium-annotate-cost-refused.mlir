// RUN: not fhelium-opt %s -p fhelium-annotate-cost 2>&1 | filecheck %s
// RUN: not fhelium-opt %s -p fhelium-annotate-cost{family=gpu} 2>&1 | filecheck %s --check-prefix=FAMILY
// RUN: not fhelium-opt %s -p fhelium-annotate-cost{trips=-1} 2>&1 | filecheck %s --check-prefix=TRIPS
// RUN: not fhelium-opt %s -t cost{family=gpu} 2>&1 | filecheck %s --check-prefix=TARGET-FAMILY
// RUN: not fhelium-opt %s -t cost{trips=-1} 2>&1 | filecheck %s --check-prefix=TARGET-TRIPS
// RUN: not fhelium-opt %s -t cost 2>&1 | filecheck %s --check-prefix=TARGET
// RUN: not fhelium-opt %s -p 'fhelium-annotate-cost{calibration="%s"}' 2>&1 | filecheck %s

// CHECK: error: pass fhelium-annotate-cost: found nothing for ckks.parameters on the module, expected #ckks.parameters<..>: what ops cost depends on them
// FAMILY: error: pass 'fhelium-annotate-cost': found family=gpu, expected one of cpu, torch
// TRIPS: error: pass 'fhelium-annotate-cost': found trips=-1, expected at least 0
// TARGET-FAMILY: error: target 'cost': found family=gpu, expected one of cpu, torch
// TARGET-TRIPS: error: target 'cost': found trips=-1, expected at least 0
// TARGET: error: target cost: found nothing for ckks.parameters on the module
!ct = !ckks.ciphertext<level = 1, scale = 2^40, components = 2, form = evaluation>
func.func @main(%x: !ct) -> !ct {
  %y = ckks.negate %x : !ct
  func.return %y : !ct
}
