// RUN: %opt %s -p "rns-shard-limbs{ranks=2}" | filecheck %s
// RUN: %opt %s -p "rns-shard-limbs{ranks=2},dist-verify-spmd{ranks=2}"
// RUN: %opt %s -p "rns-shard-limbs{ranks=2},dist-verify-spmd{ranks=2}" --print-debuginfo | filecheck %s --check-prefix=PLACE
// RUN: %opt %s -p "rns-shard-limbs{ranks=3}" | filecheck %s --check-prefix=THREE

// Key switches that are only added up: each rank does some of them whole, and the products are added
// once. With s of them over l limbs and k special primes each of two ranks sends s l / 2 + 2 l + 4 k
// limbs, halved, where gathering all inputs sends s l.

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257], [353]], special = [641], digits = 4,
                      scale = 2^16, secret = ternary, security = none>
!c = !rns.poly<basis = Q[0:4], components = 1, form = coefficient>
!d = !rns.poly<basis = Q[0:2], components = 1, form = coefficient>
!e = !rns.poly<basis = Q[2:4], components = 1, form = coefficient>
!rc = !rns.poly<basis = Q[0:4] P[0], components = 1, form = coefficient>
!r = !rns.poly<basis = Q[0:4] P[0], components = 1, form = evaluation>
!x = !rns.poly<basis = Q[0:4] P[0], components = 2, form = evaluation>
!q = !rns.poly<basis = Q[0:4], components = 2, form = evaluation>
!k = !ckks.key<rotation, 1>
builtin.module attributes {ckks.parameters = #p} {
  // Seven send 14 + 12, where gathering all sends 28. Rank 0 has the inputs 0, 2, 4 and 6.
  // CHECK-LABEL: func.func @seven
  // CHECK:         %[[first:.*]] = rns.negate %{{.*}} : !poly1_Q0_2_coeff
  // CHECK:         %[[c0:.*]] = dist.gather %[[first]] to 0 along limbs in %{{.*}} : !poly1_Q0_2_coeff -> !poly1_Q0to4_coeff
  // CHECK-NEXT:    dist.gather %{{.*}} to 1 along limbs
  // CHECK-NEXT:    dist.gather %{{.*}} to 0 along limbs
  // CHECK-COUNT-4: dist.gather
  // CHECK-NEXT:    %[[a:.*]] = rns.project %[[c0]] : !poly1_Q0to4_coeff -> !poly1_Q0to2_coeff
  // CHECK-NEXT:    %[[b:.*]] = rns.mod_up %[[a]] : !poly1_Q0to2_coeff -> !poly1_Q0to4_P0_coeff
  // CHECK-NEXT:    %[[c:.*]] = rns.ntt %[[b]]
  // CHECK:         rns.key_product %[[c]], %{{.*}} with %key : (!poly1_Q0to4_P0, !poly1_Q0to4_P0, {{.*}}) -> !poly2_Q0to4_P0
  // CHECK-COUNT-3: rns.key_product
  // CHECK-COUNT-3: rns.add %{{.*}} : (!poly2_Q0to4_P0, !poly2_Q0to4_P0) -> !poly2_Q0to4_P0
  // CHECK-NEXT:    %[[q:.*]] = rns.project %[[sum:.*]] : !poly2_Q0to4_P0 -> !poly2_Q0to4
  // CHECK-NEXT:    dist.reduce_scatter %[[q]] along limbs in %{{.*}} : !poly2_Q0to4 -> !poly2_Q0_2 combine
  // CHECK:         %[[special:.*]] = rns.project %[[sum]] : !poly2_Q0to4_P0 -> !poly2_P0
  // CHECK-NEXT:    dist.all_reduce %[[special]] in %{{.*}} : !poly2_P0 combine
  // CHECK:         %[[joined:.*]] = rns.add %{{.*}} : (!poly2_Q0_2_P0, !poly2_Q0_2_P0) -> !poly2_Q0_2_P0
  // CHECK-NEXT:    rns.add %[[joined]], %{{.*}} : (!poly2_Q0_2_P0, !poly2_Q0_2_P0) -> !poly2_Q0_2_P0
  // CHECK:       } else {
  // CHECK-COUNT-7: dist.gather
  // CHECK-COUNT-3: rns.key_product {{.*}} -> !poly2_Q0to4_P0
  // CHECK-NOT:     rns.key_product
  // CHECK:         dist.reduce_scatter {{.*}} : !poly2_Q0to4 -> !poly2_Q1_3 combine
  // CHECK:       func.return
  // PLACE-LABEL: func.func @seven
  // PLACE:         dist.gather {{.*}} loc("{{.*}}":[[# @LINE + 68]]:
  // Three ranks send 28 / 3 + 12.
  // THREE-LABEL: func.func @seven
  // THREE-COUNT-3: dist.reduce_scatter
  // THREE:       func.return
  func.func @seven(%x0: !c, %x1: !c, %x2: !c, %x3: !c, %x4: !c, %x5: !c, %x6: !c, %y: !x, %key: !k) -> !x {
    %z0 = rns.negate %x0 : !c
    %z1 = rns.negate %x1 : !c
    %z2 = rns.negate %x2 : !c
    %z3 = rns.negate %x3 : !c
    %z4 = rns.negate %x4 : !c
    %z5 = rns.negate %x5 : !c
    %z6 = rns.negate %x6 : !c
    %a0 = rns.project %z0 : !c -> !d
    %b0 = rns.mod_up %a0 : !d -> !rc
    %c0 = rns.ntt %b0 : !rc -> !r
    %d0 = rns.project %z0 : !c -> !e
    %e0 = rns.mod_up %d0 : !e -> !rc
    %f0 = rns.ntt %e0 : !rc -> !r
    %p0 = rns.key_product %c0, %f0 with %key : (!r, !r, !k) -> !x
    %a1 = rns.project %z1 : !c -> !d
    %b1 = rns.mod_up %a1 : !d -> !rc
    %c1 = rns.ntt %b1 : !rc -> !r
    %d1 = rns.project %z1 : !c -> !e
    %e1 = rns.mod_up %d1 : !e -> !rc
    %f1 = rns.ntt %e1 : !rc -> !r
    %p1 = rns.key_product %c1, %f1 with %key : (!r, !r, !k) -> !x
    %a2 = rns.project %z2 : !c -> !d
    %b2 = rns.mod_up %a2 : !d -> !rc
    %c2 = rns.ntt %b2 : !rc -> !r
    %d2 = rns.project %z2 : !c -> !e
    %e2 = rns.mod_up %d2 : !e -> !rc
    %f2 = rns.ntt %e2 : !rc -> !r
    %p2 = rns.key_product %c2, %f2 with %key : (!r, !r, !k) -> !x
    %a3 = rns.project %z3 : !c -> !d
    %b3 = rns.mod_up %a3 : !d -> !rc
    %c3 = rns.ntt %b3 : !rc -> !r
    %d3 = rns.project %z3 : !c -> !e
    %e3 = rns.mod_up %d3 : !e -> !rc
    %f3 = rns.ntt %e3 : !rc -> !r
    %p3 = rns.key_product %c3, %f3 with %key : (!r, !r, !k) -> !x
    %a4 = rns.project %z4 : !c -> !d
    %b4 = rns.mod_up %a4 : !d -> !rc
    %c4 = rns.ntt %b4 : !rc -> !r
    %d4 = rns.project %z4 : !c -> !e
    %e4 = rns.mod_up %d4 : !e -> !rc
    %f4 = rns.ntt %e4 : !rc -> !r
    %p4 = rns.key_product %c4, %f4 with %key : (!r, !r, !k) -> !x
    %a5 = rns.project %z5 : !c -> !d
    %b5 = rns.mod_up %a5 : !d -> !rc
    %c5 = rns.ntt %b5 : !rc -> !r
    %d5 = rns.project %z5 : !c -> !e
    %e5 = rns.mod_up %d5 : !e -> !rc
    %f5 = rns.ntt %e5 : !rc -> !r
    %p5 = rns.key_product %c5, %f5 with %key : (!r, !r, !k) -> !x
    %a6 = rns.project %z6 : !c -> !d
    %b6 = rns.mod_up %a6 : !d -> !rc
    %c6 = rns.ntt %b6 : !rc -> !r
    %d6 = rns.project %z6 : !c -> !e
    %e6 = rns.mod_up %d6 : !e -> !rc
    %f6 = rns.ntt %e6 : !rc -> !r
    %p6 = rns.key_product %c6, %f6 with %key : (!r, !r, !k) -> !x
    %s0 = rns.add %y, %p0 : (!x, !x) -> !x
    %s1 = rns.add %s0, %p1 : (!x, !x) -> !x
    %s2 = rns.add %s1, %p2 : (!x, !x) -> !x
    %s3 = rns.add %s2, %p3 : (!x, !x) -> !x
    %s4 = rns.add %s3, %p4 : (!x, !x) -> !x
    %s5 = rns.add %s4, %p5 : (!x, !x) -> !x
    %s6 = rns.add %s5, %p6 : (!x, !x) -> !x
    func.return %s6 : !x
  }

  // Each turn of a loop has a sum of its own.
  // CHECK-LABEL: func.func @in_a_loop
  // CHECK:         scf.for {{.*}} -> (!poly2_Q0_2_P0) {
  // CHECK-COUNT-7:   dist.gather
  // CHECK-COUNT-4:   rns.key_product {{.*}} -> !poly2_Q0to4_P0
  // CHECK-NOT:       rns.key_product
  // CHECK:           dist.reduce_scatter
  // CHECK:           scf.yield
  // CHECK:       func.return
  func.func @in_a_loop(%x0: !c, %x1: !c, %x2: !c, %x3: !c, %x4: !c, %x5: !c, %x6: !c, %y: !x, %key: !k) -> !x {
    %i = arith.constant 1 : index
    %n = arith.constant 5 : index
    %r = scf.for %j = %i to %n step %i iter_args(%a = %y) -> (!x) {
      %z0 = rns.negate %x0 : !c
      %z1 = rns.negate %x1 : !c
      %z2 = rns.negate %x2 : !c
      %z3 = rns.negate %x3 : !c
      %z4 = rns.negate %x4 : !c
      %z5 = rns.negate %x5 : !c
      %z6 = rns.negate %x6 : !c
      %a0 = rns.project %z0 : !c -> !d
      %b0 = rns.mod_up %a0 : !d -> !rc
      %c0 = rns.ntt %b0 : !rc -> !r
      %d0 = rns.project %z0 : !c -> !e
      %e0 = rns.mod_up %d0 : !e -> !rc
      %f0 = rns.ntt %e0 : !rc -> !r
      %p0 = rns.key_product %c0, %f0 with %key : (!r, !r, !k) -> !x
      %a1 = rns.project %z1 : !c -> !d
      %b1 = rns.mod_up %a1 : !d -> !rc
      %c1 = rns.ntt %b1 : !rc -> !r
      %d1 = rns.project %z1 : !c -> !e
      %e1 = rns.mod_up %d1 : !e -> !rc
      %f1 = rns.ntt %e1 : !rc -> !r
      %p1 = rns.key_product %c1, %f1 with %key : (!r, !r, !k) -> !x
      %a2 = rns.project %z2 : !c -> !d
      %b2 = rns.mod_up %a2 : !d -> !rc
      %c2 = rns.ntt %b2 : !rc -> !r
      %d2 = rns.project %z2 : !c -> !e
      %e2 = rns.mod_up %d2 : !e -> !rc
      %f2 = rns.ntt %e2 : !rc -> !r
      %p2 = rns.key_product %c2, %f2 with %key : (!r, !r, !k) -> !x
      %a3 = rns.project %z3 : !c -> !d
      %b3 = rns.mod_up %a3 : !d -> !rc
      %c3 = rns.ntt %b3 : !rc -> !r
      %d3 = rns.project %z3 : !c -> !e
      %e3 = rns.mod_up %d3 : !e -> !rc
      %f3 = rns.ntt %e3 : !rc -> !r
      %p3 = rns.key_product %c3, %f3 with %key : (!r, !r, !k) -> !x
      %a4 = rns.project %z4 : !c -> !d
      %b4 = rns.mod_up %a4 : !d -> !rc
      %c4 = rns.ntt %b4 : !rc -> !r
      %d4 = rns.project %z4 : !c -> !e
      %e4 = rns.mod_up %d4 : !e -> !rc
      %f4 = rns.ntt %e4 : !rc -> !r
      %p4 = rns.key_product %c4, %f4 with %key : (!r, !r, !k) -> !x
      %a5 = rns.project %z5 : !c -> !d
      %b5 = rns.mod_up %a5 : !d -> !rc
      %c5 = rns.ntt %b5 : !rc -> !r
      %d5 = rns.project %z5 : !c -> !e
      %e5 = rns.mod_up %d5 : !e -> !rc
      %f5 = rns.ntt %e5 : !rc -> !r
      %p5 = rns.key_product %c5, %f5 with %key : (!r, !r, !k) -> !x
      %a6 = rns.project %z6 : !c -> !d
      %b6 = rns.mod_up %a6 : !d -> !rc
      %c6 = rns.ntt %b6 : !rc -> !r
      %d6 = rns.project %z6 : !c -> !e
      %e6 = rns.mod_up %d6 : !e -> !rc
      %f6 = rns.ntt %e6 : !rc -> !r
      %p6 = rns.key_product %c6, %f6 with %key : (!r, !r, !k) -> !x
      %s0 = rns.add %a, %p0 : (!x, !x) -> !x
      %s1 = rns.add %s0, %p1 : (!x, !x) -> !x
      %s2 = rns.add %s1, %p2 : (!x, !x) -> !x
      %s3 = rns.add %s2, %p3 : (!x, !x) -> !x
      %s4 = rns.add %s3, %p4 : (!x, !x) -> !x
      %s5 = rns.add %s4, %p5 : (!x, !x) -> !x
      %s6 = rns.add %s5, %p6 : (!x, !x) -> !x
      scf.yield %s6 : !x
    }
    func.return %r : !x
  }

  // Six would send as many limbs either way.
  // CHECK-LABEL: func.func @six
  // CHECK-NOT:     dist.reduce_scatter
  // CHECK:       func.return
  // THREE-LABEL: func.func @six
  // THREE-COUNT-3: dist.reduce_scatter
  // THREE:       func.return
  func.func @six(%x0: !c, %x1: !c, %x2: !c, %x3: !c, %x4: !c, %x5: !c, %y: !x, %key: !k) -> !x {
    %z0 = rns.negate %x0 : !c
    %z1 = rns.negate %x1 : !c
    %z2 = rns.negate %x2 : !c
    %z3 = rns.negate %x3 : !c
    %z4 = rns.negate %x4 : !c
    %z5 = rns.negate %x5 : !c
    %a0 = rns.project %z0 : !c -> !d
    %b0 = rns.mod_up %a0 : !d -> !rc
    %c0 = rns.ntt %b0 : !rc -> !r
    %d0 = rns.project %z0 : !c -> !e
    %e0 = rns.mod_up %d0 : !e -> !rc
    %f0 = rns.ntt %e0 : !rc -> !r
    %p0 = rns.key_product %c0, %f0 with %key : (!r, !r, !k) -> !x
    %a1 = rns.project %z1 : !c -> !d
    %b1 = rns.mod_up %a1 : !d -> !rc
    %c1 = rns.ntt %b1 : !rc -> !r
    %d1 = rns.project %z1 : !c -> !e
    %e1 = rns.mod_up %d1 : !e -> !rc
    %f1 = rns.ntt %e1 : !rc -> !r
    %p1 = rns.key_product %c1, %f1 with %key : (!r, !r, !k) -> !x
    %a2 = rns.project %z2 : !c -> !d
    %b2 = rns.mod_up %a2 : !d -> !rc
    %c2 = rns.ntt %b2 : !rc -> !r
    %d2 = rns.project %z2 : !c -> !e
    %e2 = rns.mod_up %d2 : !e -> !rc
    %f2 = rns.ntt %e2 : !rc -> !r
    %p2 = rns.key_product %c2, %f2 with %key : (!r, !r, !k) -> !x
    %a3 = rns.project %z3 : !c -> !d
    %b3 = rns.mod_up %a3 : !d -> !rc
    %c3 = rns.ntt %b3 : !rc -> !r
    %d3 = rns.project %z3 : !c -> !e
    %e3 = rns.mod_up %d3 : !e -> !rc
    %f3 = rns.ntt %e3 : !rc -> !r
    %p3 = rns.key_product %c3, %f3 with %key : (!r, !r, !k) -> !x
    %a4 = rns.project %z4 : !c -> !d
    %b4 = rns.mod_up %a4 : !d -> !rc
    %c4 = rns.ntt %b4 : !rc -> !r
    %d4 = rns.project %z4 : !c -> !e
    %e4 = rns.mod_up %d4 : !e -> !rc
    %f4 = rns.ntt %e4 : !rc -> !r
    %p4 = rns.key_product %c4, %f4 with %key : (!r, !r, !k) -> !x
    %a5 = rns.project %z5 : !c -> !d
    %b5 = rns.mod_up %a5 : !d -> !rc
    %c5 = rns.ntt %b5 : !rc -> !r
    %d5 = rns.project %z5 : !c -> !e
    %e5 = rns.mod_up %d5 : !e -> !rc
    %f5 = rns.ntt %e5 : !rc -> !r
    %p5 = rns.key_product %c5, %f5 with %key : (!r, !r, !k) -> !x
    %s0 = rns.add %p0, %p1 : (!x, !x) -> !x
    %s1 = rns.add %s0, %p2 : (!x, !x) -> !x
    %s2 = rns.add %s1, %p3 : (!x, !x) -> !x
    %s3 = rns.add %s2, %p4 : (!x, !x) -> !x
    %s4 = rns.add %s3, %p5 : (!x, !x) -> !x
    func.return %s4 : !x
  }

  // A product that is needed by itself too is made by limbs, and with it what shares its digits.
  // CHECK-LABEL: func.func @read
  // CHECK-COUNT-7: dist.gather
  // CHECK-NOT:     dist.gather
  // CHECK:         dist.reduce_scatter
  // CHECK:       } else {
  // CHECK:       func.return
  func.func @read(%x0: !c, %x1: !c, %x2: !c, %x3: !c, %x4: !c, %x5: !c, %x6: !c, %x7: !c, %y: !x, %key: !k) -> (!x, !x) {
    %z0 = rns.negate %x0 : !c
    %z1 = rns.negate %x1 : !c
    %z2 = rns.negate %x2 : !c
    %z3 = rns.negate %x3 : !c
    %z4 = rns.negate %x4 : !c
    %z5 = rns.negate %x5 : !c
    %z6 = rns.negate %x6 : !c
    %z7 = rns.negate %x7 : !c
    %a0 = rns.project %z0 : !c -> !d
    %b0 = rns.mod_up %a0 : !d -> !rc
    %c0 = rns.ntt %b0 : !rc -> !r
    %d0 = rns.project %z0 : !c -> !e
    %e0 = rns.mod_up %d0 : !e -> !rc
    %f0 = rns.ntt %e0 : !rc -> !r
    %p0 = rns.key_product %c0, %f0 with %key : (!r, !r, !k) -> !x
    %a1 = rns.project %z1 : !c -> !d
    %b1 = rns.mod_up %a1 : !d -> !rc
    %c1 = rns.ntt %b1 : !rc -> !r
    %d1 = rns.project %z1 : !c -> !e
    %e1 = rns.mod_up %d1 : !e -> !rc
    %f1 = rns.ntt %e1 : !rc -> !r
    %p1 = rns.key_product %c1, %f1 with %key : (!r, !r, !k) -> !x
    %a2 = rns.project %z2 : !c -> !d
    %b2 = rns.mod_up %a2 : !d -> !rc
    %c2 = rns.ntt %b2 : !rc -> !r
    %d2 = rns.project %z2 : !c -> !e
    %e2 = rns.mod_up %d2 : !e -> !rc
    %f2 = rns.ntt %e2 : !rc -> !r
    %p2 = rns.key_product %c2, %f2 with %key : (!r, !r, !k) -> !x
    %a3 = rns.project %z3 : !c -> !d
    %b3 = rns.mod_up %a3 : !d -> !rc
    %c3 = rns.ntt %b3 : !rc -> !r
    %d3 = rns.project %z3 : !c -> !e
    %e3 = rns.mod_up %d3 : !e -> !rc
    %f3 = rns.ntt %e3 : !rc -> !r
    %p3 = rns.key_product %c3, %f3 with %key : (!r, !r, !k) -> !x
    %a4 = rns.project %z4 : !c -> !d
    %b4 = rns.mod_up %a4 : !d -> !rc
    %c4 = rns.ntt %b4 : !rc -> !r
    %d4 = rns.project %z4 : !c -> !e
    %e4 = rns.mod_up %d4 : !e -> !rc
    %f4 = rns.ntt %e4 : !rc -> !r
    %p4 = rns.key_product %c4, %f4 with %key : (!r, !r, !k) -> !x
    %a5 = rns.project %z5 : !c -> !d
    %b5 = rns.mod_up %a5 : !d -> !rc
    %c5 = rns.ntt %b5 : !rc -> !r
    %d5 = rns.project %z5 : !c -> !e
    %e5 = rns.mod_up %d5 : !e -> !rc
    %f5 = rns.ntt %e5 : !rc -> !r
    %p5 = rns.key_product %c5, %f5 with %key : (!r, !r, !k) -> !x
    %a6 = rns.project %z6 : !c -> !d
    %b6 = rns.mod_up %a6 : !d -> !rc
    %c6 = rns.ntt %b6 : !rc -> !r
    %d6 = rns.project %z6 : !c -> !e
    %e6 = rns.mod_up %d6 : !e -> !rc
    %f6 = rns.ntt %e6 : !rc -> !r
    %p6 = rns.key_product %c6, %f6 with %key : (!r, !r, !k) -> !x
    %a7 = rns.project %z7 : !c -> !d
    %b7 = rns.mod_up %a7 : !d -> !rc
    %c7 = rns.ntt %b7 : !rc -> !r
    %d7 = rns.project %z7 : !c -> !e
    %e7 = rns.mod_up %d7 : !e -> !rc
    %f7 = rns.ntt %e7 : !rc -> !r
    %p7 = rns.key_product %c7, %f7 with %key : (!r, !r, !k) -> !x
    %g7 = rns.automorphism %c7, 5 : !r
    %h7 = rns.automorphism %f7, 5 : !r
    %p7b = rns.key_product %g7, %h7 with %key : (!r, !r, !k) -> !x
    %s0 = rns.add %p7, %p7b : (!x, !x) -> !x
    %s1 = rns.add %s0, %p0 : (!x, !x) -> !x
    %s2 = rns.add %s1, %p1 : (!x, !x) -> !x
    %s3 = rns.add %s2, %p2 : (!x, !x) -> !x
    %s4 = rns.add %s3, %p3 : (!x, !x) -> !x
    %s5 = rns.add %s4, %p4 : (!x, !x) -> !x
    %s6 = rns.add %s5, %p5 : (!x, !x) -> !x
    %s7 = rns.add %s6, %p6 : (!x, !x) -> !x
    func.return %s7, %p7 : !x, !x
  }

  // Rotations of one value share its digits: the rank that has it makes the products of both.
  // CHECK-LABEL: func.func @digits_of_one
  // CHECK-COUNT-8: dist.gather
  // CHECK-NOT:     dist.gather
  // CHECK-COUNT-5: rns.key_product
  // CHECK-NOT:     rns.key_product
  // CHECK:         dist.reduce_scatter
  // CHECK:       } else {
  // CHECK-COUNT-8: dist.gather
  // CHECK-COUNT-4: rns.key_product
  // CHECK-NOT:     rns.key_product
  // CHECK:       func.return
  func.func @digits_of_one(%x0: !c, %x1: !c, %x2: !c, %x3: !c, %x4: !c, %x5: !c, %x6: !c, %x7: !c, %y: !x, %key: !k) -> !x {
    %z0 = rns.negate %x0 : !c
    %z1 = rns.negate %x1 : !c
    %z2 = rns.negate %x2 : !c
    %z3 = rns.negate %x3 : !c
    %z4 = rns.negate %x4 : !c
    %z5 = rns.negate %x5 : !c
    %z6 = rns.negate %x6 : !c
    %z7 = rns.negate %x7 : !c
    %a0 = rns.project %z0 : !c -> !d
    %b0 = rns.mod_up %a0 : !d -> !rc
    %c0 = rns.ntt %b0 : !rc -> !r
    %d0 = rns.project %z0 : !c -> !e
    %e0 = rns.mod_up %d0 : !e -> !rc
    %f0 = rns.ntt %e0 : !rc -> !r
    %p0 = rns.key_product %c0, %f0 with %key : (!r, !r, !k) -> !x
    %a1 = rns.project %z1 : !c -> !d
    %b1 = rns.mod_up %a1 : !d -> !rc
    %c1 = rns.ntt %b1 : !rc -> !r
    %d1 = rns.project %z1 : !c -> !e
    %e1 = rns.mod_up %d1 : !e -> !rc
    %f1 = rns.ntt %e1 : !rc -> !r
    %p1 = rns.key_product %c1, %f1 with %key : (!r, !r, !k) -> !x
    %a2 = rns.project %z2 : !c -> !d
    %b2 = rns.mod_up %a2 : !d -> !rc
    %c2 = rns.ntt %b2 : !rc -> !r
    %d2 = rns.project %z2 : !c -> !e
    %e2 = rns.mod_up %d2 : !e -> !rc
    %f2 = rns.ntt %e2 : !rc -> !r
    %p2 = rns.key_product %c2, %f2 with %key : (!r, !r, !k) -> !x
    %a3 = rns.project %z3 : !c -> !d
    %b3 = rns.mod_up %a3 : !d -> !rc
    %c3 = rns.ntt %b3 : !rc -> !r
    %d3 = rns.project %z3 : !c -> !e
    %e3 = rns.mod_up %d3 : !e -> !rc
    %f3 = rns.ntt %e3 : !rc -> !r
    %p3 = rns.key_product %c3, %f3 with %key : (!r, !r, !k) -> !x
    %a4 = rns.project %z4 : !c -> !d
    %b4 = rns.mod_up %a4 : !d -> !rc
    %c4 = rns.ntt %b4 : !rc -> !r
    %d4 = rns.project %z4 : !c -> !e
    %e4 = rns.mod_up %d4 : !e -> !rc
    %f4 = rns.ntt %e4 : !rc -> !r
    %p4 = rns.key_product %c4, %f4 with %key : (!r, !r, !k) -> !x
    %a5 = rns.project %z5 : !c -> !d
    %b5 = rns.mod_up %a5 : !d -> !rc
    %c5 = rns.ntt %b5 : !rc -> !r
    %d5 = rns.project %z5 : !c -> !e
    %e5 = rns.mod_up %d5 : !e -> !rc
    %f5 = rns.ntt %e5 : !rc -> !r
    %p5 = rns.key_product %c5, %f5 with %key : (!r, !r, !k) -> !x
    %a6 = rns.project %z6 : !c -> !d
    %b6 = rns.mod_up %a6 : !d -> !rc
    %c6 = rns.ntt %b6 : !rc -> !r
    %d6 = rns.project %z6 : !c -> !e
    %e6 = rns.mod_up %d6 : !e -> !rc
    %f6 = rns.ntt %e6 : !rc -> !r
    %p6 = rns.key_product %c6, %f6 with %key : (!r, !r, !k) -> !x
    %a7 = rns.project %z7 : !c -> !d
    %b7 = rns.mod_up %a7 : !d -> !rc
    %c7 = rns.ntt %b7 : !rc -> !r
    %d7 = rns.project %z7 : !c -> !e
    %e7 = rns.mod_up %d7 : !e -> !rc
    %f7 = rns.ntt %e7 : !rc -> !r
    %p7 = rns.key_product %c7, %f7 with %key : (!r, !r, !k) -> !x
    %g7 = rns.automorphism %c7, 5 : !r
    %h7 = rns.automorphism %f7, 5 : !r
    %p7b = rns.key_product %g7, %h7 with %key : (!r, !r, !k) -> !x
    %s0 = rns.add %p7, %p7b : (!x, !x) -> !x
    %s1 = rns.add %s0, %p0 : (!x, !x) -> !x
    %s2 = rns.add %s1, %p1 : (!x, !x) -> !x
    %s3 = rns.add %s2, %p2 : (!x, !x) -> !x
    %s4 = rns.add %s3, %p3 : (!x, !x) -> !x
    %s5 = rns.add %s4, %p4 : (!x, !x) -> !x
    %s6 = rns.add %s5, %p5 : (!x, !x) -> !x
    %s7 = rns.add %s6, %p6 : (!x, !x) -> !x
    func.return %s7 : !x
  }
}
