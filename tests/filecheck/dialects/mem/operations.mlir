// RUN: %roundtrip
// RUN: %generic-roundtrip
// RUN: %opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL:  func.func @transfer(%x: tensor<2xi64>, %device: !mem.device)
// GENERIC:      "func.func"() <{sym_name = "transfer"
func.func @transfer(%x: tensor<2xi64>, %device: !mem.device) {
  // The default space is not written.
  // CHECK-NEXT:   %a = mem.transfer %x to %device : tensor<2xi64>
  // GENERIC:      %a = "mem.transfer"(%x, %device) <{memory_space = #mem<space default>}> : (tensor<2xi64>, !mem.device) -> tensor<2xi64>
  %a = mem.transfer %x to %device : tensor<2xi64>

  // CHECK-NEXT:   %b = mem.transfer %x to %device : tensor<2xi64>
  // GENERIC-NEXT: %b = "mem.transfer"(%x, %device) <{memory_space = #mem<space default>}> : (tensor<2xi64>, !mem.device) -> tensor<2xi64>
  %b = mem.transfer %x to %device in default : tensor<2xi64>

  // CHECK-NEXT:   %c = mem.transfer %x to %device in pageable_host : tensor<2xi64>
  // GENERIC-NEXT: %c = "mem.transfer"(%x, %device) <{memory_space = #mem<space pageable_host>}>
  %c = mem.transfer %x to %device in pageable_host : tensor<2xi64>

  // CHECK-NEXT:   %d = mem.transfer %x to %device in pinned_host {fhelium.implementation = "mine"} : tensor<2xi64>
  // GENERIC-NEXT: %d = "mem.transfer"(%x, %device) <{memory_space = #mem<space pinned_host>}> {fhelium.implementation = "mine"}
  %d = mem.transfer %x to %device in pinned_host {fhelium.implementation = "mine"} : tensor<2xi64>

  // A space is an attribute of its own too, and absent in the generic form it is the default.
  // CHECK-NEXT:   %e = mem.transfer %x to %device {space = #mem<space pinned_host>} : tensor<2xi64>
  // GENERIC-NEXT: %e = "mem.transfer"(%x, %device) <{memory_space = #mem<space default>}> {space = #mem<space pinned_host>}
  %e = "mem.transfer"(%x, %device) {space = #mem<space pinned_host>} : (tensor<2xi64>, !mem.device) -> tensor<2xi64>
  func.return
}
