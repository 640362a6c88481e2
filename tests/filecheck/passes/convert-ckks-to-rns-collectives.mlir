// RUN: %opt %s -p convert-ckks-to-rns | filecheck %s

// Collectives carry residues as they did ciphertexts, regions and all.

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193]], special = [353], digits = 2,
                      scale = 2^6, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!pt = !ckks.plaintext<level = 0, scale = 2^6, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: !ct, %p: !pt) -> !ct {
    // CHECK:      %world = fhelium.resource @world : !dist.group
    %world = fhelium.resource @world : !dist.group
    // CHECK-NEXT: %a = dist.all_gather %x along 0 in %world : !poly2_Q0to2 -> !poly2_Q0to2
    %a = dist.all_gather %x along 0 in %world : !ct -> !ct
    // CHECK-NEXT: %b = dist.gather %p to 0 along 0 in %world : !poly1_Q0 -> !poly1_Q0
    %b = dist.gather %p to 0 along 0 in %world : !pt -> !pt
    // CHECK-NEXT: %c = dist.scatter %a from 0 along 0 in %world : !poly2_Q0to2 -> !poly2_Q0to2
    %c = dist.scatter %a from 0 along 0 in %world : !ct -> !ct
    // CHECK-NEXT: %d = dist.all_to_all %a along 0 in %world : !poly2_Q0to2 -> !poly2_Q0to2
    %d = dist.all_to_all %a along 0 in %world : !ct -> !ct
    // CHECK-NEXT: %e = dist.reduce %c to 0 in %world : !poly2_Q0to2 combine {
    // CHECK-NEXT: ^bb0(%l: !poly2_Q0to2, %r: !poly2_Q0to2):
    // CHECK-NEXT:   %s = rns.add %l, %r : (!poly2_Q0to2, !poly2_Q0to2) -> !poly2_Q0to2
    // CHECK-NEXT:   dist.yield %s : !poly2_Q0to2
    // CHECK-NEXT: }
    %e = dist.reduce %c to 0 in %world : !ct combine {
    ^bb0(%l: !ct, %r: !ct):
      %s = ckks.add %l, %r : !ct
      dist.yield %s : !ct
    }
    // CHECK-NEXT: %f = dist.reduce_scatter %a along 0 in %world : !poly2_Q0to2 -> !poly2_Q0to2 combine {
    // CHECK-NEXT: ^bb0(%l_1: !poly2_Q0to2, %r_1: !poly2_Q0to2):
    // CHECK-NEXT:   %s_1 = rns.sub %l_1, %r_1 : (!poly2_Q0to2, !poly2_Q0to2) -> !poly2_Q0to2
    // CHECK-NEXT:   dist.yield %s_1 : !poly2_Q0to2
    // CHECK-NEXT: }
    %f = dist.reduce_scatter %a along 0 in %world : !ct -> !ct combine {
    ^bb0(%l: !ct, %r: !ct):
      %s = ckks.sub %l, %r : !ct
      dist.yield %s : !ct
    }
    // CHECK-NEXT: dist.send %f to 1 in %world tag 2 : !poly2_Q0to2
    dist.send %f to 1 in %world tag 2 : !ct
    // CHECK-NEXT: %g = dist.recv from 1 in %world : !poly2_Q0to2
    %g = dist.recv from 1 in %world : !ct
    // CHECK-NEXT: dist.barrier in %world
    dist.barrier in %world
    func.return %g : !ct
  }
}
