// RUN: %opt %s -p convert-ckks-to-rns | filecheck %s
// RUN: %opt %s -p convert-ckks-to-rns --print-debuginfo | filecheck %s --check-prefix=PLACE

// Values change type wherever they pass: loops, branches, calls, blocks, tensors.

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193]], special = [353], digits = 2,
                      scale = 2^6, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
builtin.module attributes {ckks.parameters = #p} {
  // CHECK-LABEL: func.func @loop(%x: !poly2_Q0to2 {ckks.type = !ct_L1_s6}, %n: index) -> (!poly2_Q0to2 {ckks.type = !ct_L1_s6}) {
  // CHECK:         %r, %k = scf.for %i = %one to %n step %one iter_args(%s = %x, %count = %one) -> (!poly2_Q0to2, index) {
  // CHECK-NEXT:      %t = rns.add %s, %x : (!poly2_Q0to2, !poly2_Q0to2) -> !poly2_Q0to2
  // CHECK-NEXT:      scf.yield %t, %count : !poly2_Q0to2, index
  // PLACE:           %t = rns.add {{.*}} loc("{{.*}}":20:12)
  // PLACE-NEXT:      scf.yield {{.*}} loc("{{.*}}":21:7)
  // PLACE-NEXT:    } loc("{{.*}}":19:14)
  func.func @loop(%x: !ct, %n: index) -> !ct {
    %one = arith.constant 1 : index
    %r, %k = scf.for %i = %one to %n step %one iter_args(%s = %x, %count = %one) -> (!ct, index) {
      %t = ckks.add %s, %x : !ct
      scf.yield %t, %count : !ct, index
    }
    func.return %r : !ct
  }

  // CHECK-LABEL: func.func @branch
  // CHECK-NEXT:    %r = scf.if %c -> (!poly2_Q0to2) {
  // CHECK-NEXT:      %t = rns.negate %x : !poly2_Q0to2
  // CHECK-NEXT:      scf.yield %t : !poly2_Q0to2
  // CHECK-NEXT:    } else {
  // CHECK-NEXT:      scf.yield %x : !poly2_Q0to2
  func.func @branch(%x: !ct, %c: i1) -> !ct {
    %r = scf.if %c -> (!ct) {
      %t = ckks.negate %x : !ct
      scf.yield %t : !ct
    } else {
      scf.yield %x : !ct
    }
    func.return %r : !ct
  }

  // CHECK-LABEL: func.func @call
  // CHECK-NEXT:    %a = func.call @branch(%x, %c) : (!poly2_Q0to2, i1) -> !poly2_Q0to2
  // CHECK-NEXT:    %b = func.call @outside(%a) : (!poly2_Q0to2) -> !poly2_Q0to2
  func.func @call(%x: !ct, %c: i1) -> !ct {
    %a = func.call @branch(%x, %c) : (!ct, i1) -> !ct
    %b = func.call @outside(%a) : (!ct) -> !ct
    func.return %b : !ct
  }

  // CHECK: func.func private @outside(!poly2_Q0to2) -> !poly2_Q0to2
  func.func private @outside(!ct) -> !ct

  // CHECK-LABEL: func.func @blocks
  // CHECK-NEXT:    cf.cond_br %c, ^[[a:.*]](%x : !poly2_Q0to2), ^[[b:.*]]
  // CHECK-NEXT:  ^[[a]](%y: !poly2_Q0to2):
  // CHECK-NEXT:    cf.br ^[[a]](%y : !poly2_Q0to2)
  // CHECK-NEXT:  ^[[b]]:
  func.func @blocks(%x: !ct, %c: i1) {
    cf.cond_br %c, ^a(%x : !ct), ^b
  ^a(%y: !ct):
    cf.br ^a(%y : !ct)
  ^b:
    func.return
  }

  // CHECK-LABEL: func.func @tensors(%xs: tensor<?x!poly2_Q0to2> {ckks.type = tensor<?x!ct_L1_s6>}, %i: index) -> (tensor<1x!poly2_Q0to2> {ckks.type = tensor<1x!ct_L1_s6>}) {
  // CHECK-NEXT:    %n = tensor.dim %xs, %i : tensor<?x!poly2_Q0to2>
  // CHECK-NEXT:    %x = tensor.extract %xs[%i] : tensor<?x!poly2_Q0to2>
  // CHECK-NEXT:    %y = rns.negate %x : !poly2_Q0to2
  // CHECK-NEXT:    %z = tensor.from_elements %y : tensor<1x!poly2_Q0to2>
  func.func @tensors(%xs: tensor<?x!ct>, %i: index) -> tensor<1x!ct> {
    %n = tensor.dim %xs, %i : tensor<?x!ct>
    %x = tensor.extract %xs[%i] : tensor<?x!ct>
    %y = ckks.negate %x : !ct
    %z = tensor.from_elements %y : tensor<1x!ct>
    func.return %z : tensor<1x!ct>
  }

  // Attributes of arguments and results stay beside the new one.
  // CHECK-LABEL: func.func @named(%x: !poly2_Q0to2 {name = "features", ckks.type = !ct_L1_s6}, %i: i32 {name = "count"}) -> (!poly2_Q0to2 {name = "score", ckks.type = !ct_L1_s6}, i32) {
  func.func @named(%x: !ct {name = "features"}, %i: i32 {name = "count"}) -> (!ct {name = "score"}, i32) {
    func.return %x, %i : !ct, i32
  }

  // CHECK-LABEL: func.func @without(%i: i32 {name = "count"}) -> i32 {
  // CHECK-NEXT:    func.return %i : i32
  func.func @without(%i: i32 {name = "count"}) -> i32 {
    func.return %i : i32
  }
}
