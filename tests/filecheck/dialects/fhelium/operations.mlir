// RUN: %roundtrip
// RUN: %generic-roundtrip
// RUN: %opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL:   func.func @names() {
// GENERIC:       "func.func"() <{sym_name = "names"
func.func @names() {
  // CHECK-NEXT:    %world = fhelium.resource @world : !dist.group
  // GENERIC:       %world = "fhelium.resource"() <{symbol = @world}> : () -> !dist.group
  %world = fhelium.resource @world : !dist.group

  // CHECK-NEXT:    %device = fhelium.resource @"cuda:0" : !mem.device
  // GENERIC-NEXT:  %device = "fhelium.resource"() <{symbol = @"cuda:0"}> : () -> !mem.device
  %device = fhelium.resource @"cuda:0" : !mem.device

  // CHECK-NEXT:    %key = fhelium.resource @key : !ckks.key<rotation, -3>
  // GENERIC-NEXT:  %key = "fhelium.resource"() <{symbol = @key}> : () -> !ckks.key<rotation, -3>
  %key = fhelium.resource @key : !ckks.key<rotation, -3>

  // CHECK-NEXT:    %weights = fhelium.material @weights : tensor<30xf64>
  // GENERIC-NEXT:  %weights = "fhelium.material"() <{symbol = @weights}> : () -> tensor<30xf64>
  %weights = fhelium.material @weights : tensor<30xf64>

  // An assignment, and any other discardable attribute, stands with the op.
  // CHECK-NEXT:    %mask = fhelium.material @mask {fhelium.implementation = "mine", fhelium.in_place, note = 1 : i64} : !pt
  // GENERIC-NEXT:  %mask = "fhelium.material"() <{symbol = @mask}> {fhelium.implementation = "mine", fhelium.in_place, note = 1 : i64} : () -> !pt
  %mask = fhelium.material @mask {fhelium.implementation = "mine", fhelium.in_place, note = 1 : i64} : !ckks.plaintext
  func.return
}
