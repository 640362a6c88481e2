// RUN: %opt %s -p "rns-shard-limbs{ranks=2 group=pair},dist-verify-spmd{ranks=2}" | filecheck %s
// RUN: %opt %s -p "rns-shard-limbs{ranks=2 group=pair}" --print-debuginfo | filecheck %s --check-prefix=PLACE
// RUN: %opt %s -p "rns-shard-limbs{ranks=1}" | filecheck %s --check-prefix=ALONE

// One prime a level: rank 0 has those of levels 0 and 2, rank 1 those of 1 and 3, and both have P.
// ALONE-NOT: dist.rank

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
  // PLACE:         fhelium.resource @pair : !dist.group loc("{{.*}}":[[# @LINE + 8]]:
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

  // Of the primes that come in, a rank has some; the others are a factor.
  // CHECK-LABEL: func.func @scale_up
  // CHECK:         %[[x0:.*]] = rns.project %x : !poly2_Q0to2 -> !poly2_Q0
  // CHECK-NEXT:    %[[m0:.*]] = rns.mul_constant %[[x0]], 353 : !poly2_Q0
  // CHECK-NEXT:    rns.scale_up %[[m0]] : !poly2_Q0 -> !poly2_Q0_2_P0
  // CHECK:         %[[x1:.*]] = rns.project %x : !poly2_Q0to2 -> !poly2_Q1
  // CHECK-NEXT:    %[[m1:.*]] = rns.mul_constant %[[x1]], 257 : !poly2_Q1
  // CHECK-NEXT:    rns.scale_up %[[m1]] : !poly2_Q1 -> !poly2_Q1_3_P0
  func.func @scale_up(%x: !two) -> !xp {
    %0 = rns.scale_up %x : !two -> !xp
    func.return %0 : !xp
  }

  // What has one owner is whole on every rank; another has none of its limbs, and gets zeros.
  // CHECK-LABEL: func.func @scale_up_whole
  // CHECK:         %[[m0:.*]] = rns.mul_constant %x, 193 : !poly2_Q0
  // CHECK-NEXT:    rns.scale_up %[[m0]] : !poly2_Q0 -> !poly2_Q0_2
  // CHECK:         %[[m1:.*]] = rns.mul_constant %x, 257 : !poly2_Q0
  // CHECK-NEXT:    %[[u1:.*]] = rns.scale_up %[[m1]] : !poly2_Q0 -> !poly2_Q0to2
  // CHECK-NEXT:    rns.project %[[u1]] : !poly2_Q0to2 -> !poly2_Q1
  func.func @scale_up_whole(%x: !one) -> !low {
    %0 = rns.scale_up %x : !one -> !low
    func.return %0 : !low
  }

  // Tensors are of whole ciphertexts: what is taken from them is cut.
  // CHECK-LABEL: func.func @tensors
  // CHECK:         scf.if
  // CHECK-NEXT:    %[[first:.*]] = tensor.extract %t[%i] : tensor<4x!poly2_Q0to4>
  // CHECK-NEXT:    %[[a0:.*]] = rns.project %[[first]] : !poly2_Q0to4 -> !poly2_Q0_2
  // CHECK-NEXT:    scf.for %[[j:.*]] = %i to %n step %i iter_args(%[[s:.*]] = %[[a0]]) -> (!poly2_Q0_2) {
  // CHECK-NEXT:      %[[y:.*]] = tensor.extract %t[%[[j]]] : tensor<4x!poly2_Q0to4>
  // CHECK-NEXT:      %[[b0:.*]] = rns.project %[[y]] : !poly2_Q0to4 -> !poly2_Q0_2
  // CHECK-NEXT:      %[[c:.*]] = arith.cmpi
  // CHECK-NEXT:      %[[z:.*]] = arith.select %[[c]], %[[b0]], %[[s]] : !poly2_Q0_2
  // CHECK-NEXT:      rns.add %[[s]], %[[z]]
  // CHECK:         dist.all_gather {{.*}} : !poly2_Q0_2 -> !poly2_Q0to4
  // CHECK-NEXT:    %[[f:.*]] = tensor.from_elements {{.*}} : tensor<1x!poly2_Q0to4>
  // CHECK-NEXT:    scf.yield %[[f]] : tensor<1x!poly2_Q0to4>
  func.func @tensors(%t: tensor<4x!x>, %i: index, %n: index) -> tensor<1x!x> {
    %x = tensor.extract %t[%i] : tensor<4x!x>
    %s = scf.for %j = %i to %n step %i iter_args(%a = %x) -> (!x) {
      %y = tensor.extract %t[%j] : tensor<4x!x>
      %c = arith.cmpi eq, %i, %j : index
      %z = arith.select %c, %y, %a : !x
      %b = rns.add %a, %z : (!x, !x) -> !x
      scf.yield %b : !x
    }
    %f = tensor.from_elements %s : tensor<1x!x>
    func.return %f : tensor<1x!x>
  }

  // What is encoded in a loop is whole on every rank.
  // CHECK-LABEL: func.func @encoded_in_a_loop
  // CHECK:         scf.for
  // CHECK-NEXT:      %[[e:.*]] = ckks.encode %w
  // CHECK-NEXT:      %[[p:.*]] = builtin.unrealized_conversion_cast %[[e]] : {{.*}} to !poly1_Q0to4
  // CHECK-NEXT:      %[[p0:.*]] = rns.project %[[p]] : !poly1_Q0to4 -> !poly1_Q0_2
  // CHECK-NEXT:      rns.mul %{{.*}}, %[[p0]] : (!poly2_Q0_2, !poly1_Q0_2) -> !poly2_Q0_2
  func.func @encoded_in_a_loop(%x: !x, %w: tensor<8xf64>, %i: index, %n: index) -> !x {
    %s = scf.for %j = %i to %n step %i iter_args(%a = %x) -> (!x) {
      %e = ckks.encode %w : tensor<8xf64> -> !pt
      %p = builtin.unrealized_conversion_cast %e : !pt to !x1
      %b = rns.mul %a, %p : (!x, !x1) -> !x
      scf.yield %b : !x
    }
    func.return %s : !x
  }

  // Ranks can make a condition the same before they part; then limbs are sent under it.
  // CHECK-LABEL: func.func @condition
  // CHECK:         %[[k:.*]] = dist.broadcast %n from 0 in %{{.*}} : index
  // CHECK-NEXT:    %[[c:.*]] = arith.cmpi slt, %[[k]], %size : index
  // CHECK:         scf.if
  // CHECK:           scf.if %[[c]] -> (!poly2_Q0_2) {
  // CHECK:             dist.broadcast {{.*}} from 1 in %{{.*}} : !poly2_Q3
  // CHECK:         } else {
  // CHECK:           scf.if %[[c]] -> (!poly2_Q1) {
  // CHECK:             dist.broadcast {{.*}} from 1 in %{{.*}} : !poly2_Q3
  // CHECK:         func.return
  func.func @condition(%x: !x, %n: index) -> !low {
    %group = fhelium.resource @pair : !dist.group
    %size = dist.group_size %group
    %k = dist.broadcast %n from 0 in %group : index
    %c = arith.cmpi slt, %k, %size : index
    %r = scf.if %c -> (!low) {
      %y = rns.negate %x : !x
      %0 = rns.project %y : !x -> !d
      %1 = rns.intt %0 : !d -> !dc
      %2 = rns.mod_up %1 : !dc -> !lowc
      %3 = rns.ntt %2 : !lowc -> !low
      %4 = rns.mod_down %y, %3 : !x, !low
      scf.yield %4 : !low
    } else {
      %5 = rns.project %x : !x -> !low
      scf.yield %5 : !low
    }
    func.return %r : !low
  }

  // One that ranks compute by themselves is the same too, and so is a bound that is computed before.
  // CHECK-LABEL: func.func @turns
  // CHECK:         %[[m:.*]] = scf.for
  // CHECK:         fhelium.resource
  // CHECK:           scf.for {{.*}} to %[[m]] step
  // CHECK-NEXT:        arith.cmpi slt
  // CHECK-NEXT:        scf.if
  // CHECK:               dist.broadcast {{.*}} from 1
  // CHECK:         func.return
  func.func @turns(%x: !x, %z: !low) -> !low {
    %i0 = arith.constant 0 : index
    %i1 = arith.constant 1 : index
    %n = arith.constant 4 : index
    %m = scf.for %j = %i0 to %n step %i1 iter_args(%a = %i0) -> (index) {
      %b = arith.addi %a, %j : index
      scf.yield %b : index
    }
    %r = scf.for %j = %i0 to %m step %i1 iter_args(%a = %z) -> (!low) {
      %c = arith.cmpi slt, %j, %i1 : index
      %q = scf.if %c -> (!low) {
        %y = rns.negate %x : !x
        %0 = rns.project %y : !x -> !d
        %1 = rns.intt %0 : !d -> !dc
        %2 = rns.mod_up %1 : !dc -> !lowc
        %3 = rns.ntt %2 : !lowc -> !low
        %4 = rns.mod_down %y, %3 : !x, !low
        scf.yield %4 : !low
      } else {
        scf.yield %a : !low
      }
      scf.yield %q : !low
    }
    func.return %r : !low
  }

  // Pointwise ops that run together do so on shares.
  // CHECK-LABEL: func.func @together
  // CHECK:         rns.fused (%[[a:.*]] = %{{.*}}) : (!poly2_Q0_2) -> !poly2_Q0_2 {
  // CHECK-NEXT:      %[[b:.*]] = rns.negate %[[a]] : !poly2_Q0_2
  // CHECK-NEXT:      rns.yield %[[b]] : !poly2_Q0_2
  func.func @together(%x: !x) -> !x {
    %r = rns.fused (%a = %x) : (!x) -> !x {
      %b = rns.negate %a : !x
      rns.yield %b : !x
    }
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
