// RUN: %opt %s -p 'mem-insert-transfers{default=gpu0}' | filecheck %s
// RUN: %opt %s -p 'mem-insert-transfers{default=cpu0}' | filecheck %s --check-prefix=CPU
// RUN: not %opt %s -p 'mem-insert-transfers{default=k}' 2>&1 | filecheck %s --check-prefix=OTHER

// OTHER: the option default names the device @k, found fhelium.resource @k : !ckks.key<relinearization>, expected the name of a device: call one of them something else

// What comes from outside is on the default device, also materials.

// CHECK-LABEL: func.func @main
// CHECK-NOT:   mem.transfer
// CPU:         mem.transfer %x to %g :
// CPU:         mem.transfer %w to %g :
func.func @main(%x: tensor<2xi64>) -> tensor<2xi64> {
  %d = fhelium.resource @cpu0 : !mem.device
  %g = fhelium.resource @gpu0 : !mem.device
  %k = fhelium.resource @k : !ckks.key<relinearization>
  %w = fhelium.material @w : tensor<2xi64>
  %a = tensor.cast %x {mem.device = @gpu0} : tensor<2xi64> to tensor<2xi64>
  %b = tensor.cast %w {mem.device = @gpu0} : tensor<2xi64> to tensor<2xi64>
  func.return %b : tensor<2xi64>
}
