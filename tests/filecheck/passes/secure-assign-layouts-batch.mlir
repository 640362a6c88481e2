// RUN: %opt %s -p secure-assign-layouts{batch=128} | filecheck %s
// RUN: %opt %s -p secure-assign-layouts{slots=8192} | filecheck %s

// A batch of 128 samples on 64 positions takes 8192 slots, and so many slots hold that batch.
// CHECK: slots = 8192, batch = 128, period = 64
// CHECK: builtin.module attributes {secure.slots = 8192 : i64}
func.func @main(%x: !secure.tensor<33>) -> !secure.tensor<33> {
  func.return %x : !secure.tensor<33>
}
