// RUN: not fhelium-opt %s 2>&1 | filecheck %s

// CHECK:      {{.*}}heir.mlir:7:18: error: found type '!lwe.lwe_ciphertext' of the unknown dialect 'lwe'
// CHECK-NEXT: func.func @f(%x: !lwe.lwe_ciphertext<a>) {
// CHECK-NEXT:                  ^^^^^^^^^^^^^^^^^^^
// CHECK-NEXT: note: this looks like HEIR's text: HEIR's ckks, rns and lwe dialects are others than FHElium's
func.func @f(%x: !lwe.lwe_ciphertext<a>) {
  func.return
}
