// RUN: fhelium-opt %s -p fhelium-annotate-cost{trips=3} | filecheck %s
// RUN: fhelium-opt %s -p convert-ckks-to-rns,fhelium-annotate-cost{family=cpu} | filecheck %s --check-prefix=RNS
// RUN: fhelium-opt %s -t cost{trips=3} | filecheck %s --check-prefix=TABLE

// Counts depend on the program alone; milliseconds on the calibration.

// N = 16, 3 primes of Q and 1 of P, 3 digits; a polynomial modulo one prime has 128 bytes.
#parameters = #ckks.parameters<
  ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3, scale = 2^6,
  secret = ternary, security = none>

!ct = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 2, scale = 2^12, components = 3, form = evaluation>
!ct2 = !ckks.ciphertext<level = 2, scale = 2^12, components = 2, form = evaluation>
!pt = !ckks.plaintext<level = 2, scale = 2^6, form = evaluation>

builtin.module attributes {ckks.parameters = #parameters} {
  // What a link computes once is apart.
  // CHECK: func.func @main
  // CHECK-SAME: fhelium.cost = {ntts = 23 : i64, key_switches = 1 : i64, bytes = {{[0-9]+}} : i64, milliseconds = {{[0-9.e+-]+}} : f64}
  // CHECK-SAME: fhelium.link_cost = {ntts = 3 : i64, key_switches = 0 : i64, bytes = 384 : i64, milliseconds = {{[0-9.e+-]+}} : f64}
  // RNS: func.func @main
  // RNS-SAME: fhelium.cost = {ntts = 23 : i64, key_switches = 1 : i64
  func.func @main(%x: !ct, %n: index) -> (!ct2, !ct) {
    %key = fhelium.resource @relinearization : !ckks.key<relinearization>
    %weights = fhelium.material @weights : tensor<4xf64>
    // CHECK: ckks.encode %weights {fhelium.cost = {ntts = 3 : i64, key_switches = 0 : i64, bytes = 384 : i64
    %p = ckks.encode %weights : tensor<4xf64> -> !pt
    // 2 components and 1 of 3 limbs are read, 2 written: 15 polynomials.
    // CHECK: ckks.add_plain %x, %p {fhelium.cost = {ntts = 0 : i64, key_switches = 0 : i64, bytes = 1920 : i64
    %y = ckks.add_plain %x, %p : !ct, !pt
    %square = ckks.square %y : !ct -> !ct3
    // 3 limbs to coefficients, 3 digits of 4 limbs back; then 2 components from 1 limb of P to 3 of Q.
    // CHECK: ckks.relinearize {{.*}} {fhelium.cost = {ntts = 23 : i64, key_switches = 1 : i64
    %two = ckks.relinearize %square with %key : !ct3 -> !ct2
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %sum = scf.for %i = %zero to %n step %one iter_args(%carried = %y) -> (!ct) {
      %next = ckks.add %carried, %carried : !ct
      scf.yield %next : !ct
    }
    func.return %two, %sum : !ct2, !ct
  }
  // A call costs what it calls.
  // CHECK: func.func @caller
  // CHECK-SAME: ntts = 26 : i64, key_switches = 1 : i64
  func.func @caller(%x: !ct, %n: index) -> !ct2 {
    %0, %1 = func.call @main(%x, %n) : (!ct, index) -> (!ct2, !ct)
    func.return %0 : !ct2
  }
}

// TABLE:      @main
// TABLE:        op {{ *}} times {{ *}} NTTs {{ *}} key switches {{ *}} MB moved {{ *}} ms
// TABLE:        ckks.encode {{ *}} 1 {{ *}} 3 {{ *}} 0
// TABLE:        link, once {{ *}} 1 {{ *}} 3 {{ *}} 0
// TABLE-DAG:    ckks.relinearize {{ *}} 1 {{ *}} 23 {{ *}} 1
// TABLE-DAG:    ckks.add {{ *}} 3 {{ *}} 0 {{ *}} 0
// TABLE-DAG:    (beside ops) {{ *}} 1 {{ *}} 0 {{ *}} 0
// TABLE:        run {{ *}} 6
// TABLE:      times: the default calibration, of another machine
// TABLE-NEXT: 1 loops without constant bounds counted as 3 iterations each: see trips=
