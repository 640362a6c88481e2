// RUN: %opt %s -t 'kernel{kernel=ntt sizes=64 width=4}' | filecheck %s
// RUN: %opt %s -t 'kernel{kernel=ntt sizes=64 width=4 form=llvm}' | filecheck %s --check-prefix=LLVM
// RUN: %opt %s -t 'kernel{kernel=ntt sizes=64 width=4}' | xdsl-opt | filecheck %s

module {}

// The kernel is IR of the `llvm` dialect, which parses like any other.
// CHECK:      llvm.func @ntt(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64) {

// The first level loads residues, and turns them into float64 by setting bits.
// CHECK:      llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr -> vector<4xi64>
// CHECK-NEXT: llvm.or
// CHECK-NEXT: llvm.bitcast %{{.*}} : vector<4xi64> to vector<4xf64>
// CHECK-NEXT: llvm.fsub

// A product: h = a w, l = a w - h, k = round(a (w / q)), h - k q + l.
// CHECK:      %[[H:.*]] = llvm.fmul %[[A:.*]], %[[W:.*]] : vector<4xf64>
// CHECK-NEXT: %[[N:.*]] = llvm.fneg %[[H]] : vector<4xf64>
// CHECK-NEXT: %[[L:.*]] = llvm.intr.fma(%[[A]], %[[W]], %[[N]]) : (vector<4xf64>, vector<4xf64>, vector<4xf64>) -> vector<4xf64>
// CHECK-NEXT: %[[E:.*]] = llvm.fmul %[[A]], %{{.*}} : vector<4xf64>
// CHECK-NEXT: %[[K:.*]] = llvm.call_intrinsic "llvm.roundeven.v4f64"(%[[E]])
// CHECK-NEXT: %[[R:.*]] = llvm.intr.fma(%[[K]], %{{.*}}, %[[H]])
// CHECK-NEXT: llvm.fadd %[[R]], %[[L]] : vector<4xf64>

// The last level exchanges lanes in registers, and its results are residues again.
// CHECK:      llvm.shufflevector %{{.*}}, %{{.*}} [0, 4, 2, 6]
// CHECK:      llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64} : vector<4xi64>, !llvm.ptr
// CHECK:      llvm.func @ntt_share

// LLVM:       define void @"ntt"(
// LLVM-NOT:   fast
// LLVM-NOT:   contract
// LLVM:       call <4 x double> @"llvm.fma.v4f64"
// LLVM:       call <4 x double> @"llvm.roundeven.v4f64"
