// RUN: %opt %s -p convert-ckks-to-rns | filecheck %s
// RUN: %opt %s -p convert-ckks-to-rns,convert-ckks-to-rns | filecheck %s
// RUN: %opt %s -p convert-ckks-to-rns --print-debuginfo | filecheck %s --check-prefix=PLACE

// Each op that has a kernel of its own; those that need several are in the files beside this one.

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^6, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>
!ct2 = !ckks.ciphertext<level = 2, scale = 2^12, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 2, scale = 2^12, components = 3, form = evaluation>
!low = !ckks.ciphertext<level = 0, scale = 2^6, components = 2, form = evaluation>
!coeff = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = coefficient>
!coeff_low = !ckks.ciphertext<level = 0, scale = 2^6, components = 2, form = coefficient>
!pt = !ckks.plaintext<level = 2, scale = 2^6, form = evaluation>

// CHECK-DAG: !ct_L2_s6 = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>
// CHECK-DAG: !poly2_Q0to3 = !rns.poly<basis = Q[0:3], components = 2, form = evaluation>
// CHECK-DAG: !poly1_Q0to3 = !rns.poly<basis = Q[0:3], components = 1, form = evaluation>
// CHECK: builtin.module attributes {ckks.parameters = #ckks_N16_L2} {
builtin.module attributes {ckks.parameters = #p} {
  // Arguments and results remember what the client passes in and gets back.
  // CHECK-LABEL: func.func @arithmetic(%x: !poly2_Q0to3 {ckks.type = !ct_L2_s6}, %y: !poly2_Q0to3 {ckks.type = !ct_L2_s6}, %p: !poly1_Q0to3 {ckks.type = !pt_L2_s6}, %q: !poly1_Q0to3 {ckks.type = !pt_L2_s6}) -> (!poly2_Q0to3 {ckks.type = !ct_L2_s6}, !poly3_Q0to3 {ckks.type = !ct3_L2_s12}) {
  func.func @arithmetic(%x: !ct, %y: !ct, %p: !pt, %q: !pt) -> (!ct, !ct3) {
    // CHECK-NEXT: %add = rns.add %x, %y : (!poly2_Q0to3, !poly2_Q0to3) -> !poly2_Q0to3
    // PLACE: %add = rns.add {{.*}} loc("{{.*}}rns.mlir":27:12)
    %add = ckks.add %x, %y : !ct
    // CHECK-NEXT: %sub = rns.sub %x, %y : (!poly2_Q0to3, !poly2_Q0to3) -> !poly2_Q0to3
    %sub = ckks.sub %x, %y : !ct
    // CHECK-NEXT: %negate = rns.negate %x : !poly2_Q0to3
    %negate = ckks.negate %x : !ct
    // A plaintext has one component; the sum takes the other as zero.
    // CHECK-NEXT: %add_plain = rns.add %x, %p : (!poly2_Q0to3, !poly1_Q0to3) -> !poly2_Q0to3
    %add_plain = ckks.add_plain %x, %p : !ct, !pt
    // CHECK-NEXT: %sub_plain = rns.sub %x, %p : (!poly2_Q0to3, !poly1_Q0to3) -> !poly2_Q0to3
    %sub_plain = ckks.sub_plain %x, %p : !ct, !pt
    // CHECK-NEXT: %mul = rns.mul %x, %y : (!poly2_Q0to3, !poly2_Q0to3) -> !poly3_Q0to3
    %mul = ckks.mul %x, %y : (!ct, !ct) -> !ct3
    // CHECK-NEXT: %square = rns.square %x : !poly2_Q0to3 -> !poly3_Q0to3
    %square = ckks.square %x : !ct -> !ct3
    // CHECK-NEXT: %mul_plain = rns.mul %x, %p : (!poly2_Q0to3, !poly1_Q0to3) -> !poly2_Q0to3
    %mul_plain = ckks.mul_plain %x, %p : (!ct, !pt) -> !ct2
    // CHECK-NEXT: %weighted_sum = rns.weighted_sum %x, %y by %p, %q : (!poly2_Q0to3, !poly2_Q0to3, !poly1_Q0to3, !poly1_Q0to3) -> !poly2_Q0to3
    %weighted_sum = ckks.weighted_sum %x, %y by %p, %q : (!ct, !ct, !pt, !pt) -> !ct2
    // The nearest integers to 0.3 * 2^6 and -1.3 * 2^6; a tie goes to the even one.
    // CHECK-NEXT: %scalar = rns.add_constant %x, 19 : !poly2_Q0to3
    %scalar = ckks.add_scalar %x, 0.3 : !ct
    // CHECK-NEXT: %factor = rns.mul_constant %x, -83 : !poly2_Q0to3
    %factor = ckks.mul_scalar %x, -1.3 : !ct -> !ct2
    // CHECK-NEXT: %tie = rns.mul_constant %x, 2 : !poly2_Q0to3
    %tie = ckks.mul_scalar %x, 2.5 : !ct -> !ct
    // CHECK-NEXT: %integer = rns.mul_constant %x, -3 : !poly2_Q0to3
    %integer = ckks.mul_integer %x, -3 : !ct
    // CHECK-NEXT: func.return %add, %mul : !poly2_Q0to3, !poly3_Q0to3
    func.return %add, %mul : !ct, !ct3
  }

  // CHECK-LABEL: func.func @forms
  func.func @forms(%x: !ct, %y: !coeff) {
    // CHECK-NEXT: %coeff = rns.intt %x : !poly2_Q0to3 -> !poly2_Q0to3_coeff
    %coeff = ckks.to_coefficient %x : !ct -> !coeff
    // CHECK-NEXT: %sum = rns.add %coeff, %y : (!poly2_Q0to3_coeff, !poly2_Q0to3_coeff) -> !poly2_Q0to3_coeff
    %sum = ckks.add %coeff, %y : !coeff
    // CHECK-NEXT: %scalar = rns.add_constant %sum, 64 : !poly2_Q0to3_coeff
    %scalar = ckks.add_scalar %sum, 1.0 : !coeff
    // CHECK-NEXT: %values = rns.ntt %scalar : !poly2_Q0to3_coeff -> !poly2_Q0to3
    %values = ckks.to_evaluation %scalar : !coeff -> !ct
    // CHECK-NEXT: %low = rns.project %x : !poly2_Q0to3 -> !poly2_Q0
    %low = ckks.mod_switch %x : !ct -> !low
    // CHECK-NEXT: %low_coeff = rns.project %y : !poly2_Q0to3_coeff -> !poly2_Q0_coeff
    %low_coeff = ckks.mod_switch %y : !coeff -> !coeff_low
    func.return
  }

  // A material remembers its type, alone and in a tensor; other values stay what they are.
  // CHECK-LABEL: func.func @materials
  func.func @materials() -> !pt {
    // CHECK-NEXT: %a = fhelium.material @a {ckks.type = !pt_L2_s6} : !poly1_Q0to3
    %a = fhelium.material @a : !pt
    // CHECK-NEXT: %b = fhelium.material @b {note, ckks.type = tensor<4x!pt_L2_s6>} : tensor<4x!poly1_Q0to3>
    %b = fhelium.material @b {note} : tensor<4x!pt>
    // CHECK-NEXT: %c = fhelium.material @c : tensor<4xf64>
    %c = fhelium.material @c : tensor<4xf64>
    // CHECK-NEXT: %key = fhelium.resource @key : !ckks.key<relinearization>
    %key = fhelium.resource @key : !ckks.key<relinearization>
    func.return %a : !pt
  }

  // The specialized all-reduce says its moduli, and keeps what it records.
  // CHECK-LABEL: func.func @all_reduce
  func.func @all_reduce(%x: !ct, %group: !dist.group) {
    // CHECK-NEXT: %[[q:.*]] = rns.moduli : !rns.moduli<Q[0:3]>
    // CHECK-NEXT: %{{.*}} = dist.all_reduce_add_ciphertext %x in %group mod %[[q]] {fhelium.implementation = "mine", note} : !poly2_Q0to3, !rns.moduli<Q[0:3]>
    %a = dist.all_reduce_add_ciphertext %x in %group {fhelium.implementation = "mine", note} : !ct
    // CHECK-NEXT: %b = dist.broadcast %x from 0 in %group : !poly2_Q0to3
    %b = dist.broadcast %x from 0 in %group : !ct
    // CHECK-NEXT: %c = dist.all_reduce %x in %group : !poly2_Q0to3 combine {
    // CHECK-NEXT: ^{{.*}}(%l: !poly2_Q0to3, %r: !poly2_Q0to3):
    // CHECK-NEXT:   %s = rns.add %l, %r : (!poly2_Q0to3, !poly2_Q0to3) -> !poly2_Q0to3
    // CHECK-NEXT:   dist.yield %s : !poly2_Q0to3
    %c = dist.all_reduce %x in %group : !ct combine {
    ^bb0(%l: !ct, %r: !ct):
      %s = ckks.add %l, %r : !ct
      dist.yield %s : !ct
    }
    func.return
  }
}
