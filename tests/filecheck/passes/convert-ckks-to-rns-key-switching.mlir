// RUN: %opt %s -p convert-ckks-to-rns | filecheck %s
// RUN: %opt %s -p convert-ckks-to-rns --print-debuginfo | filecheck %s --check-prefix=PLACE
// RUN: %opt %s -p convert-ckks-to-rns,canonicalize,cse,dce | grep -c 'rns.i\?ntt' | filecheck %s --check-prefix=COUNT

// Two primes a level, two digits of three primes: a digit ends inside a level, and a rescale drops
// both primes of its level.

// @chain: intt, a ntt each digit, intt and ntt for each of two divisions: 7. @rotate and @conjugate
// have the same without the second division, 5 each; @lower has one digit less, 4.
// COUNT: {{^21$}}

#p = #ckks.parameters<ring_degree = 16, moduli = [[97, 193], [257, 353], [449, 577]], special = [641, 673, 769], digits = 2,
                      scale = 2^16, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 2, scale = 2^16, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 2, scale = 2^32, components = 3, form = evaluation>
!ct2 = !ckks.ciphertext<level = 2, scale = 2^32, components = 2, form = evaluation>
!low = !ckks.ciphertext<level = 1, scale = 16578.21268908763, components = 2, form = evaluation>
!least = !ckks.ciphertext<level = 0, scale = 2^14, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  // CHECK-LABEL: func.func @chain
  // CHECK-NEXT: %[[x3:.*]] = rns.mul %x, %y : (!poly2_Q0to6, !poly2_Q0to6) -> !poly3_Q0to6
  // Digits.
  // CHECK-NEXT: %[[s2:.*]] = rns.components %[[x3]][2 to 3] : !poly3_Q0to6 -> !poly1_Q0to6
  // CHECK-NEXT: %[[c:.*]] = rns.intt %[[s2]] : !poly1_Q0to6 -> !poly1_Q0to6_coeff
  // CHECK-NEXT: %[[p0:.*]] = rns.project %[[c]] : !poly1_Q0to6_coeff -> !poly1_Q0to3_coeff
  // CHECK-NEXT: %[[u0:.*]] = rns.mod_up %[[p0]] : !poly1_Q0to3_coeff -> !poly1_Q0to6_P0to3_coeff
  // CHECK-NEXT: %[[d0:.*]] = rns.ntt %[[u0]] : !poly1_Q0to6_P0to3_coeff -> !poly1_Q0to6_P0to3
  // CHECK-NEXT: %[[p1:.*]] = rns.project %[[c]] : !poly1_Q0to6_coeff -> !poly1_Q3to6_coeff
  // CHECK-NEXT: %[[u1:.*]] = rns.mod_up %[[p1]] : !poly1_Q3to6_coeff -> !poly1_Q0to6_P0to3_coeff
  // CHECK-NEXT: %[[d1:.*]] = rns.ntt %[[u1]] : !poly1_Q0to6_P0to3_coeff -> !poly1_Q0to6_P0to3
  // CHECK-NEXT: %[[k:.*]] = rns.key_product %[[d0]], %[[d1]] with %key : (!poly1_Q0to6_P0to3, !poly1_Q0to6_P0to3, !ckks.key<relinearization>) -> !poly2_Q0to6_P0to3
  // ModDown.
  // CHECK-NEXT: %[[a:.*]] = rns.project %[[k]] : !poly2_Q0to6_P0to3 -> !poly2_P0to3
  // CHECK-NEXT: %[[b:.*]] = rns.intt %[[a]] : !poly2_P0to3 -> !poly2_P0to3_coeff
  // CHECK-NEXT: %[[e:.*]] = rns.mod_up %[[b]] : !poly2_P0to3_coeff -> !poly2_Q0to6_coeff
  // CHECK-NEXT: %[[f:.*]] = rns.ntt %[[e]] : !poly2_Q0to6_coeff -> !poly2_Q0to6
  // CHECK-NEXT: %[[g:.*]] = rns.mod_down %[[k]], %[[f]] : !poly2_Q0to6_P0to3, !poly2_Q0to6
  // CHECK-NEXT: %[[h:.*]] = rns.components %[[x3]][0 to 2] : !poly3_Q0to6 -> !poly2_Q0to6
  // CHECK-NEXT: %[[i:.*]] = rns.add %[[h]], %[[g]] : (!poly2_Q0to6, !poly2_Q0to6) -> !poly2_Q0to6
  // Rescale.
  // CHECK-NEXT: %[[j:.*]] = rns.project %[[i]] : !poly2_Q0to6 -> !poly2_Q4to6
  // CHECK-NEXT: %[[l:.*]] = rns.intt %[[j]] : !poly2_Q4to6 -> !poly2_Q4to6_coeff
  // CHECK-NEXT: %[[m:.*]] = rns.mod_up %[[l]] : !poly2_Q4to6_coeff -> !poly2_Q0to4_coeff
  // CHECK-NEXT: %[[n:.*]] = rns.ntt %[[m]] : !poly2_Q0to4_coeff -> !poly2_Q0to4
  // CHECK-NEXT: %[[o:.*]] = rns.mod_down %[[i]], %[[n]] : !poly2_Q0to6, !poly2_Q0to4
  // CHECK-NEXT: func.return %[[o]] : !poly2_Q0to4

  // All ops of a lowering stand where the op stood.
  // PLACE-LABEL: func.func @chain
  // PLACE-NEXT:    rns.mul {{.*}} loc("{{.*}}":63:10)
  // PLACE-NEXT:    rns.components {{.*}} loc("{{.*}}":64:10)
  // PLACE-NEXT:    rns.intt {{.*}} loc("{{.*}}":64:10)
  // PLACE:         rns.key_product {{.*}} loc("{{.*}}":64:10)
  // PLACE:         rns.add {{.*}} loc("{{.*}}":64:10)
  // PLACE-NEXT:    rns.project {{.*}} loc("{{.*}}":65:10)
  // PLACE-NEXT:    rns.intt {{.*}} loc("{{.*}}":65:10)
  // PLACE-NEXT:    rns.mod_up {{.*}} loc("{{.*}}":65:10)
  // PLACE-NEXT:    rns.ntt {{.*}} loc("{{.*}}":65:10)
  // PLACE-NEXT:    rns.mod_down {{.*}} loc("{{.*}}":65:10)
  // PLACE-NEXT:    func.return {{.*}} loc("{{.*}}":66:5)
  // PLACE-NEXT:  } loc("{{.*}}":62:3)
  func.func @chain(%x: !ct, %y: !ct, %key: !ckks.key<relinearization>) -> !low {
    %a = ckks.mul %x, %y : (!ct, !ct) -> !ct3
    %b = ckks.relinearize %a with %key : !ct3 -> !ct2
    %c = ckks.rescale %b : !ct2 -> !low
    func.return %c : !low
  }

  // 5^-2 = 13^2 = 9 modulo 32.
  // CHECK-LABEL: func.func @rotate
  // CHECK-NEXT: %[[m:.*]] = rns.automorphism %x, 9 : !poly2_Q0to6
  // CHECK-NEXT: %[[s:.*]] = rns.components %[[m]][1 to 2] : !poly2_Q0to6 -> !poly1_Q0to6
  // CHECK:      %[[k:.*]] = rns.key_product %{{.*}}, %{{.*}} with %key : (!poly1_Q0to6_P0to3, !poly1_Q0to6_P0to3, !ckks.key<rotation, -2>) -> !poly2_Q0to6_P0to3
  // CHECK:      %[[d:.*]] = rns.mod_down
  // CHECK-NEXT: %[[c:.*]] = rns.components %[[m]][0 to 1] : !poly2_Q0to6 -> !poly1_Q0to6
  // CHECK-NEXT: %[[r:.*]] = rns.add %[[d]], %[[c]] : (!poly2_Q0to6, !poly1_Q0to6) -> !poly2_Q0to6
  // CHECK-NEXT: func.return %[[r]]
  func.func @rotate(%x: !ct, %key: !ckks.key<rotation, -2>) -> !ct {
    %r = ckks.rotate %x by -2 with %key : !ct, !ckks.key<rotation, -2>
    func.return %r : !ct
  }

  // The conjugate is the automorphism 2N - 1.
  // CHECK-LABEL: func.func @conjugate
  // CHECK-NEXT: rns.automorphism %x, 31 : !poly2_Q0to6
  // CHECK:      rns.key_product %{{.*}}, %{{.*}} with %key : (!poly1_Q0to6_P0to3, !poly1_Q0to6_P0to3, !ckks.key<conjugation>) -> !poly2_Q0to6_P0to3
  func.func @conjugate(%x: !ct, %key: !ckks.key<conjugation>) -> !ct {
    %r = ckks.conjugate %x with %key : !ct
    func.return %r : !ct
  }

  // At a lower level the digits are cut short, and those without limbs are left out.
  // CHECK-LABEL: func.func @lower
  // CHECK:       rns.project {{.*}} : !poly1_Q0to2_coeff -> !poly1_Q0to2_coeff
  // CHECK-NEXT:  rns.mod_up {{.*}} : !poly1_Q0to2_coeff -> !poly1_Q0to2_P0to3_coeff
  // CHECK-NEXT:  rns.ntt
  // CHECK-NEXT:  rns.key_product %{{[^,]*}} with %key : (!poly1_Q0to2_P0to3, !ckks.key<rotation, 1>) -> !poly2_Q0to2_P0to3
  func.func @lower(%x: !least, %key: !ckks.key<rotation, 1>) -> !least {
    %r = ckks.rotate %x by 1 with %key : !least, !ckks.key<rotation, 1>
    func.return %r : !least
  }
}
