// RUN: %opt %s -p "rns-shard-limbs{ranks=2 group=pair},dist-verify-spmd{ranks=2}" | filecheck %s
// RUN: %opt %s -p "rns-shard-limbs{ranks=2}" --print-debuginfo | filecheck %s --check-prefix=PLACE
// RUN: %opt %s -p "rns-shard-limbs{ranks=1}" | filecheck %s --check-prefix=ALONE

// One prime a level: rank 0 has those of levels 0 and 2, rank 1 those of 1 and 3, and both have P.
// ALONE-NOT: dist.

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257], [353]], special = [641], digits = 4,
                      scale = 2^16, secret = ternary, security = none>
!x = !rns.poly<basis = Q[0:4], components = 2, form = evaluation>
!x1 = !rns.poly<basis = Q[0:4], components = 1, form = evaluation>
!pt = !ckks.plaintext<level = 3, scale = 2^16, form = evaluation>
!low = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
!two = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!one = !rns.poly<basis = Q[0], components = 2, form = evaluation>
!d = !rns.poly<basis = Q[3], components = 2, form = evaluation>
!dc = !rns.poly<basis = Q[3], components = 2, form = coefficient>
!lowc = !rns.poly<basis = Q[0:3], components = 2, form = coefficient>
!s = !rns.poly<basis = Q[1], components = 2, form = evaluation>
!sc = !rns.poly<basis = Q[1], components = 2, form = coefficient>
!onec = !rns.poly<basis = Q[0], components = 2, form = coefficient>
!xp = !rns.poly<basis = Q[0:4] P[0], components = 2, form = evaluation>
!dp = !rns.poly<basis = Q[3] P[0], components = 2, form = evaluation>
!dpc = !rns.poly<basis = Q[3] P[0], components = 2, form = coefficient>
builtin.module attributes {ckks.parameters = #p} {
  // Ops limb by limb send nothing; the result is gathered.
  // CHECK-LABEL: func.func @limbwise
  // CHECK-NEXT:  %[[n:.*]] = arith.constant 4 : index
  // CHECK-NEXT:  %[[w:.*]] = fhelium.material @w : !poly2_Q0to4
  // CHECK-NEXT:  %[[g:.*]] = fhelium.resource @pair : !dist.group
  // CHECK-NEXT:  %[[rank:.*]] = dist.rank %[[g]] of 2
  // CHECK-NEXT:  %[[zero:.*]] = arith.constant 0 : index
  // CHECK-NEXT:  %[[first:.*]] = arith.cmpi eq, %[[rank]], %[[zero]] : index
  // CHECK-NEXT:  %[[r:.*]], %[[m:.*]] = scf.if %[[first]] -> (!poly2_Q0to4, index) {
  // CHECK-NEXT:    %[[x0:.*]] = rns.project %x : !poly2_Q0to4 -> !poly2_Q0_2
  // CHECK-NEXT:    %[[w0:.*]] = rns.project %[[w]] : !poly2_Q0to4 -> !poly2_Q0_2
  // CHECK-NEXT:    %[[s0:.*]] = rns.add %[[x0]], %[[w0]] {note} : (!poly2_Q0_2, !poly2_Q0_2) -> !poly2_Q0_2
  // CHECK-NEXT:    %[[t0:.*]] = rns.mul_constant %[[s0]], 3 : !poly2_Q0_2
  // CHECK-NEXT:    %[[m0:.*]] = rns.automorphism %[[t0]], 5 : !poly2_Q0_2
  // CHECK-NEXT:    %[[a0:.*]] = dist.all_gather %[[m0]] along limbs in %[[g]] : !poly2_Q0_2 -> !poly2_Q0to4
  // CHECK-NEXT:    scf.yield %[[a0]], %[[n]] : !poly2_Q0to4, index
  // CHECK-NEXT:  } else {
  // CHECK-NEXT:    rns.project %x : !poly2_Q0to4 -> !poly2_Q1_3
  // CHECK:         dist.all_gather {{.*}} : !poly2_Q1_3 -> !poly2_Q0to4
  // CHECK-NEXT:    scf.yield
  // CHECK-NEXT:  }
  // CHECK-NEXT:  func.return %[[r]], %[[m]] : !poly2_Q0to4, index

  // New ops stand where those stood that they are there for.
  // PLACE-LABEL: func.func @limbwise
  // PLACE:         fhelium.resource @world : !dist.group loc("{{.*}}":[[# @LINE + 8]]:
  // PLACE-NEXT:    dist.rank {{.*}} loc("{{.*}}":[[# @LINE + 7]]:
  // PLACE:         scf.if
  // PLACE-NEXT:    rns.project %x {{.*}} loc("{{.*}}":[[# @LINE + 5]]:
  // PLACE-NEXT:    rns.project %{{.*}} loc("{{.*}}":[[# @LINE + 6]]:
  // PLACE-NEXT:    rns.add {{.*}} loc("{{.*}}":[[# @LINE + 6]]:
  // PLACE:         rns.automorphism {{.*}} loc("{{.*}}":[[# @LINE + 8]]:
  // PLACE-NEXT:    dist.all_gather {{.*}} loc("{{.*}}":[[# @LINE + 7]]:
  func.func @limbwise(%x: !x) -> (!x, index) {
    %n = arith.constant 4 : index
    %w = fhelium.material @w : !x
    %a = rns.add %x, %w {note} : (!x, !x) -> !x
    %b = rns.mul_constant %a, 3 : !x

    %c = rns.automorphism %b, 5 : !x
    func.return %c, %n : !x, index
  }

  // The limb that goes has one owner, who broadcasts it; the other gives zeros, and divides by a
  // constant: 353^-1 modulo 97 * 257.
  // CHECK-LABEL: func.func @rescale
  // CHECK:         %[[x0:.*]] = rns.negate {{.*}} : !poly2_Q0_2
  // CHECK-NEXT:    %[[l0:.*]] = rns.project %[[x0]] : !poly2_Q0_2 -> !poly2_Q0
  // CHECK-NEXT:    %[[u0:.*]] = rns.scale_up %[[l0]] : !poly2_Q0 -> !poly2_Q0_3
  // CHECK-NEXT:    %[[z0:.*]] = rns.project %[[u0]] : !poly2_Q0_3 -> !poly2_Q3
  // CHECK-NEXT:    %[[d0:.*]] = dist.broadcast %[[z0]] from 1 in %{{.*}} : !poly2_Q3
  // CHECK-NEXT:    rns.intt %[[d0]]
  // CHECK-NEXT:    rns.mod_up {{.*}} : !poly2_Q3_coeff -> !poly2_Q0_2_coeff
  // CHECK-NEXT:    %[[r0:.*]] = rns.ntt
  // CHECK-NEXT:    %[[s0:.*]] = rns.sub %[[x0]], %[[r0]] : (!poly2_Q0_2, !poly2_Q0_2) -> !poly2_Q0_2
  // CHECK-NEXT:    rns.mul_constant %[[s0]], 17302 : !poly2_Q0_2
  // CHECK-NEXT:    dist.all_gather {{.*}} : !poly2_Q0_2 -> !poly2_Q0to3
  // CHECK:       } else {
  // CHECK-NEXT:    rns.project %x : !poly2_Q0to4 -> !poly2_Q1_3
  // CHECK-NEXT:    %[[x1:.*]] = rns.negate {{.*}} : !poly2_Q1_3
  // CHECK-NEXT:    %[[l1:.*]] = rns.project %[[x1]] : !poly2_Q1_3 -> !poly2_Q3
  // CHECK-NEXT:    %[[d1:.*]] = dist.broadcast %[[l1]] from 1 in %{{.*}} : !poly2_Q3
  // CHECK-NEXT:    rns.intt %[[d1]]
  // CHECK-NEXT:    rns.mod_up {{.*}} : !poly2_Q3_coeff -> !poly2_Q1_coeff
  // CHECK-NEXT:    %[[r1:.*]] = rns.ntt
  // CHECK-NEXT:    rns.mod_down %[[x1]], %[[r1]] : !poly2_Q1_3, !poly2_Q1
  // CHECK-NEXT:    dist.all_gather {{.*}} : !poly2_Q1 -> !poly2_Q0to3
  func.func @rescale(%x: !x) -> !low {
    %y = rns.negate %x : !x
    %0 = rns.project %y : !x -> !d
    %1 = rns.intt %0 : !d -> !dc
    %2 = rns.mod_up %1 : !dc -> !lowc
    %3 = rns.ntt %2 : !lowc -> !low
    %4 = rns.mod_down %y, %3 : !x, !low
    func.return %4 : !low
  }

  // One division by a limb of one owner and P, which both have: that limb is sent alone, and the
  // two are joined as a sum of multiples. 641^-1 is 38 modulo 353; 353^-1 is 572 modulo 641.
  // CHECK-LABEL: func.func @fused
  // CHECK:         %[[x0:.*]] = rns.negate {{.*}} : !poly2_Q0_2_P0
  // CHECK:         %[[d0:.*]] = dist.broadcast {{.*}} from 1 in %{{.*}} : !poly2_Q3
  // CHECK-NEXT:    %[[p0:.*]] = rns.project %[[x0]] : !poly2_Q0_2_P0 -> !poly2_P0
  // CHECK-NEXT:    %[[a0:.*]] = rns.mul_constant %[[d0]], 38 : !poly2_Q3
  // CHECK-NEXT:    %[[b0:.*]] = rns.scale_up %[[a0]] : !poly2_Q3 -> !poly2_Q3_P0
  // CHECK-NEXT:    %[[c0:.*]] = rns.mul_constant %[[p0]], 572 : !poly2_P0
  // CHECK-NEXT:    %[[e0:.*]] = rns.scale_up %[[c0]] : !poly2_P0 -> !poly2_Q3_P0
  // CHECK-NEXT:    %[[f0:.*]] = rns.add %[[b0]], %[[e0]]
  // CHECK-NEXT:    rns.intt %[[f0]]
  func.func @fused(%x: !xp) -> !low {
    %y = rns.negate %x : !xp
    %0 = rns.project %y : !xp -> !dp
    %1 = rns.intt %0 : !dp -> !dpc
    %2 = rns.mod_up %1 : !dpc -> !lowc
    %3 = rns.ntt %2 : !lowc -> !low
    %4 = rns.mod_down %y, %3 : !xp, !low
    func.return %4 : !low
  }

  // A value of one level has one owner: from there on every rank has it whole.
  // CHECK-LABEL: func.func @last_level
  // CHECK:         %[[x0:.*]] = rns.negate {{.*}} : !poly2_Q0
  // CHECK-NEXT:    %[[w0:.*]] = dist.all_gather %[[x0]] along limbs in %{{.*}} : !poly2_Q0 -> !poly2_Q0to2
  // CHECK-NEXT:    rns.project %[[w0]] : !poly2_Q0to2 -> !poly2_Q1
  // CHECK-NEXT:    rns.intt
  // CHECK-NEXT:    rns.mod_up {{.*}} : !poly2_Q1_coeff -> !poly2_Q0_coeff
  // CHECK-NEXT:    %[[r0:.*]] = rns.ntt
  // CHECK-NEXT:    %[[m0:.*]] = rns.mod_down %[[w0]], %[[r0]] : !poly2_Q0to2, !poly2_Q0
  // CHECK-NEXT:    scf.yield %[[m0]] : !poly2_Q0
  func.func @last_level(%x: !two) -> !one {
    %y = rns.negate %x : !two
    %0 = rns.project %y : !two -> !s
    %1 = rns.intt %0 : !s -> !sc
    %2 = rns.mod_up %1 : !sc -> !onec
    %3 = rns.ntt %2 : !onec -> !one
    %4 = rns.mod_down %y, %3 : !two, !one
    func.return %4 : !one
  }

  // Loops and branches carry shares.
  // CHECK-LABEL: func.func @control_flow
  // CHECK:         %[[x0:.*]] = rns.project %x : !poly2_Q0to4 -> !poly2_Q0_2
  // CHECK-NEXT:    scf.for %{{.*}} = %n to %m step %k iter_args(%[[a:.*]] = %[[x0]]) -> (!poly2_Q0_2) {
  // CHECK-NEXT:      scf.if %c -> (!poly2_Q0_2) {
  // CHECK-NEXT:        rns.negate %[[a]] : !poly2_Q0_2
  // CHECK:           } else {
  // CHECK-NEXT:        scf.yield %[[a]] : !poly2_Q0_2
  func.func @control_flow(%x: !x, %n: index, %m: index, %k: index, %c: i1) -> !x {
    %r = scf.for %i = %n to %m step %k iter_args(%a = %x) -> (!x) {
      %b = scf.if %c -> (!x) {
        %d = rns.negate %a : !x
        scf.yield %d : !x
      } else {
        scf.yield %a : !x
      }
      scf.yield %b : !x
    }
    func.return %r : !x
  }

  // What comes from materials alone is computed whole, which a link does once.
  // CHECK-LABEL: func.func @encoded
  // CHECK:         %[[e:.*]] = ckks.encode
  // CHECK-NEXT:    %[[p:.*]] = builtin.unrealized_conversion_cast %[[e]] : {{.*}} to !poly1_Q0to4
  // CHECK-NEXT:    %[[c:.*]] = rns.negate %[[p]] : !poly1_Q0to4
  // CHECK:         scf.if
  // CHECK-NEXT:      %[[x0:.*]] = rns.project %x
  // CHECK-NEXT:      %[[c0:.*]] = rns.project %[[c]] : !poly1_Q0to4 -> !poly1_Q0_2
  // CHECK-NEXT:      rns.mul %[[x0]], %[[c0]]
  func.func @encoded(%x: !x) -> !x {
    %w = fhelium.material @w : tensor<8xf64>
    %e = ckks.encode %w : tensor<8xf64> -> !pt
    %p = builtin.unrealized_conversion_cast %e : !pt to !x1
    %c = rns.negate %p : !x1
    %r = rns.mul %x, %c : (!x, !x1) -> !x
    func.return %r : !x
  }

  // Inputs are whole on every rank: nothing of them is sent.
  // CHECK-LABEL: func.func @input
  // CHECK-NOT:     dist.broadcast
  // CHECK:         rns.project %x : !poly2_Q0to4 -> !poly2_Q3
  // CHECK-NOT:     dist.broadcast
  // CHECK:       func.return
  func.func @input(%x: !x) -> !low {
    %0 = rns.project %x : !x -> !d
    %1 = rns.intt %0 : !d -> !dc
    %2 = rns.mod_up %1 : !dc -> !lowc
    %3 = rns.ntt %2 : !lowc -> !low
    %4 = rns.mod_down %x, %3 : !x, !low
    func.return %4 : !low
  }

  // Nothing here has limbs.
  // CHECK-LABEL: func.func @other
  // CHECK-NEXT:  arith.addi
  // CHECK-NEXT:  func.return
  func.func @other(%a: i64) -> i64 {
    %b = arith.addi %a, %a : i64
    func.return %b : i64
  }
}
