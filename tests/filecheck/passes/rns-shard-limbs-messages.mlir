// RUN: %opt %s -p "convert-ckks-to-rns,rns-hoist-decompositions,rns-fuse-divisions,rns-shard-limbs{ranks=3}" | grep 'func.func\|scf.if\|dist.[ab]' | filecheck %s
// RUN: %opt %s -p "convert-ckks-to-rns,rns-hoist-decompositions,rns-fuse-divisions,rns-shard-limbs{ranks=3},dist-verify-spmd{ranks=3}"

// How often three ranks talk, for each of a few ops: at most one gather a key switch, whatever the
// number of digits, and one broadcast a rescale. The last gather of each function is its result.

#p = #ckks.parameters<ring_degree = 64, moduli = [[257], [641], [769], [1153]], special = [1409, 2689], digits = 3,
                      scale = 2^16, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 3, scale = 2^16, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 3, scale = 2^32, components = 3, form = evaluation>
!ct2 = !ckks.ciphertext<level = 3, scale = 2^32, components = 2, form = evaluation>
!low = !ckks.ciphertext<level = 2, scale = 3725036.6834345185, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  // CHECK:      func.func @rotate
  // CHECK-NEXT: {{.*}}scf.if
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly1_Q0_3_coeff -> !poly1_Q0to4_coeff
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly2_Q0_3 -> !poly2_Q0to4
  // CHECK-NEXT: {{.*}}scf.if
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly1_Q1_coeff -> !poly1_Q0to4_coeff
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly2_Q1 -> !poly2_Q0to4
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly1_Q2_coeff -> !poly1_Q0to4_coeff
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly2_Q2 -> !poly2_Q0to4
  func.func @rotate(%x: !ct, %key: !ckks.key<rotation, 1>) -> !ct {
    %r = ckks.rotate %x by 1 with %key : !ct, !ckks.key<rotation, 1>
    func.return %r : !ct
  }

  // CHECK:      func.func @relinearize
  // CHECK-NEXT: {{.*}}scf.if
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly1_Q0_3_coeff -> !poly1_Q0to4_coeff
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly2_Q0_3 -> !poly2_Q0to4
  // CHECK-NEXT: {{.*}}scf.if
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly1_Q1_coeff -> !poly1_Q0to4_coeff
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly2_Q1 -> !poly2_Q0to4
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly1_Q2_coeff -> !poly1_Q0to4_coeff
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly2_Q2 -> !poly2_Q0to4
  func.func @relinearize(%x: !ct3, %key: !ckks.key<relinearization>) -> !ct2 {
    %r = ckks.relinearize %x with %key : !ct3 -> !ct2
    func.return %r : !ct2
  }

  // Eight rotations of one value read the same limbs.
  // CHECK:      func.func @rotate_eight
  // CHECK-NEXT: {{.*}}scf.if
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly1_Q0_3_coeff -> !poly1_Q0to4_coeff
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly2_Q0_3 -> !poly2_Q0to4
  // CHECK-NEXT: {{.*}}scf.if
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly1_Q1_coeff -> !poly1_Q0to4_coeff
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly2_Q1 -> !poly2_Q0to4
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly1_Q2_coeff -> !poly1_Q0to4_coeff
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly2_Q2 -> !poly2_Q0to4
  func.func @rotate_eight(%x: !ct, %key: !ckks.key<rotation, 1>) -> !ct {
    %1 = ckks.rotate %x by 1 with %key : !ct, !ckks.key<rotation, 1>
    %k2 = fhelium.resource @k2 : !ckks.key<rotation, 2>
    %2 = ckks.rotate %x by 2 with %k2 : !ct, !ckks.key<rotation, 2>
    %k3 = fhelium.resource @k3 : !ckks.key<rotation, 3>
    %3 = ckks.rotate %x by 3 with %k3 : !ct, !ckks.key<rotation, 3>
    %k4 = fhelium.resource @k4 : !ckks.key<rotation, 4>
    %4 = ckks.rotate %x by 4 with %k4 : !ct, !ckks.key<rotation, 4>
    %k5 = fhelium.resource @k5 : !ckks.key<rotation, 5>
    %5 = ckks.rotate %x by 5 with %k5 : !ct, !ckks.key<rotation, 5>
    %k6 = fhelium.resource @k6 : !ckks.key<rotation, 6>
    %6 = ckks.rotate %x by 6 with %k6 : !ct, !ckks.key<rotation, 6>
    %k7 = fhelium.resource @k7 : !ckks.key<rotation, 7>
    %7 = ckks.rotate %x by 7 with %k7 : !ct, !ckks.key<rotation, 7>
    %k8 = fhelium.resource @k8 : !ckks.key<rotation, 8>
    %8 = ckks.rotate %x by 8 with %k8 : !ct, !ckks.key<rotation, 8>
    %a = ckks.add %1, %2 : !ct
    %b = ckks.add %a, %3 : !ct
    %c = ckks.add %b, %4 : !ct
    %d = ckks.add %c, %5 : !ct
    %e = ckks.add %d, %6 : !ct
    %f = ckks.add %e, %7 : !ct
    %g = ckks.add %f, %8 : !ct
    func.return %g : !ct
  }

  // What goes is joined with the special primes, which need no message.
  // CHECK:      func.func @product
  // CHECK-NEXT: {{.*}}scf.if
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly1_Q0_3_coeff -> !poly1_Q0to4_coeff
  // CHECK-NEXT: {{.*}}dist.broadcast {{.*}} from 0 in {{.*}} : !poly2_Q3
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly2_Q0 -> !poly2_Q0to3
  // CHECK-NEXT: {{.*}}scf.if
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly1_Q1_coeff -> !poly1_Q0to4_coeff
  // CHECK-NEXT: {{.*}}dist.broadcast {{.*}} from 0 in {{.*}} : !poly2_Q3
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly2_Q1 -> !poly2_Q0to3
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly1_Q2_coeff -> !poly1_Q0to4_coeff
  // CHECK-NEXT: {{.*}}dist.broadcast {{.*}} from 0 in {{.*}} : !poly2_Q3
  // CHECK-NEXT: {{.*}}dist.all_gather {{.*}} : !poly2_Q2 -> !poly2_Q0to3
  func.func @product(%x: !ct, %y: !ct, %key: !ckks.key<relinearization>) -> !low {
    %a = ckks.mul %x, %y : (!ct, !ct) -> !ct3
    %b = ckks.relinearize %a with %key : !ct3 -> !ct2
    %c = ckks.rescale %b : !ct2 -> !low
    func.return %c : !low
  }
}
