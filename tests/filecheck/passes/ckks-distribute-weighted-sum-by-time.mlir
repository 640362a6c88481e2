// RUN: %opt %s -p "ckks-distribute-weighted-sum{ranks=2 least=2}" | filecheck %s --check-prefix=COUNT
// RUN: %opt %s -p "ckks-distribute-weighted-sum{ranks=2 least=2 by=time family=cpu}" | filecheck %s --check-prefix=TIME
// RUN: not %opt %s -p "ckks-distribute-weighted-sum{ranks=2 by=time family=gpu}" 2>&1 | filecheck %s --check-prefix=FAMILY
// RUN: not %opt %s -p "ckks-distribute-weighted-sum{ranks=2 by=time calibration=\"%s\"}" 2>&1 | filecheck %s --check-prefix=FILE
// RUN: echo '{"version": 1, "machine": "one rank", "samples": [{"family": "torch", "op": "func.func", "ring_degree": 8192, "units": 1, "seconds": 1.781e-05}]}' > %t
// RUN: not %opt %s -p "ckks-distribute-weighted-sum{ranks=2 least=2 by=time calibration=\"%t\"}" 2>&1 | filecheck %s --check-prefix=ALONE

// ALONE: error: pass ckks-distribute-weighted-sum: found no time of a sum over ranks in the calibration, which by=time needs: measure it with several ranks, as in fhelium-run program.mlir --calibrate FILE --nproc 2
// FAMILY: found family=gpu, expected one of cpu, torch
// FILE: found no JSON

// N = 8192, as for the samples of the default calibration.
#parameters = #ckks.parameters<
  ring_degree = 8192, moduli = [[1125899906826241], [1099510890497], [1099511480321]],
  special = [1125899906629633], digits = 3, scale = 2^40, secret = ternary, security = none>

!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
!big = !ckks.ciphertext<level = 2, scale = 2^80, components = 2, form = evaluation>
!pt = !ckks.plaintext<level = 2, scale = 2^40, form = evaluation>
!k1 = !ckks.key<rotation, 1>
!k2 = !ckks.key<rotation, 2>
!k3 = !ckks.key<rotation, 3>
!k4 = !ckks.key<rotation, 4>

builtin.module attributes {ckks.parameters = #parameters} {
  // Four products take less time than a message, though more ops are counted.
  // COUNT-LABEL: func.func @products
  // COUNT:         dist.all_reduce_add_ciphertext
  // TIME-LABEL:  func.func @products
  // TIME-NOT:      dist.
  // TIME-NOT:      scf.if
  // TIME:          func.return
  func.func @products(%x: !ct, %p: !pt) -> !big {
    %y = ckks.weighted_sum %x, %x, %x, %x by %p, %p, %p, %p : (!ct, !ct, !ct, !ct, !pt, !pt, !pt, !pt) -> !big
    func.return %y : !big
  }

  // Rotations take more.
  // COUNT-LABEL: func.func @rotations
  // COUNT:         dist.all_reduce_add_ciphertext
  // TIME-LABEL:  func.func @rotations
  // TIME:          scf.if
  // TIME:          dist.all_reduce_add_ciphertext
  // TIME:          func.return
  func.func @rotations(%x: !ct, %y: !ct, %z: !ct, %w: !ct) -> !ct {
    %k1 = fhelium.resource @rotation_1 : !k1
    %k2 = fhelium.resource @rotation_2 : !k2
    %k3 = fhelium.resource @rotation_3 : !k3
    %k4 = fhelium.resource @rotation_4 : !k4
    %a = ckks.rotate %x by 1 with %k1 : !ct, !k1
    %b = ckks.rotate %y by 2 with %k2 : !ct, !k2
    %c = ckks.rotate %z by 3 with %k3 : !ct, !k3
    %d = ckks.rotate %w by 4 with %k4 : !ct, !k4
    %0 = ckks.add %a, %b : !ct
    %1 = ckks.add %0, %c : !ct
    %2 = ckks.add %1, %d : !ct
    func.return %2 : !ct
  }
}
