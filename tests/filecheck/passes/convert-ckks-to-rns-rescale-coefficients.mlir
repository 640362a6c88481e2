// RUN: %opt %s -p convert-ckks-to-rns | filecheck %s

// In coefficient form a rescale needs no transform.

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193]], special = [353], digits = 2,
                      scale = 2^6, secret = ternary, security = none>
!in = !ckks.ciphertext<level = 1, scale = 193.0, components = 3, form = coefficient>
!out = !ckks.ciphertext<level = 0, scale = 2^0, components = 3, form = coefficient>
builtin.module attributes {ckks.parameters = #p} {
  // CHECK-LABEL: func.func @main
  // CHECK-NEXT:  %[[r:.*]] = rns.project %x : !poly3_Q0to2_coeff -> !poly3_Q1_coeff
  // CHECK-NEXT:  %[[c:.*]] = rns.mod_up %[[r]] : !poly3_Q1_coeff -> !poly3_Q0_coeff
  // CHECK-NEXT:  %[[d:.*]] = rns.mod_down %x, %[[c]] : !poly3_Q0to2_coeff, !poly3_Q0_coeff
  // CHECK-NEXT:  func.return %[[d]]
  func.func @main(%x: !in) -> !out {
    %y = ckks.rescale %x : !in -> !out
    func.return %y : !out
  }
}
