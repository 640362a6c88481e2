// RUN: %opt %s -t 'kernel{kernel=gaussian width=8}' | filecheck %s --check-prefix=GAUSSIAN
// RUN: %opt %s -t 'kernel{kernel=from_doubles sizes=2 width=4}' | filecheck %s --check-prefix=DOUBLES
// RUN: %opt %s -t 'kernel{kernel=from_words width=4}' | filecheck %s --check-prefix=WORDS
// RUN: %opt %s -t 'kernel{kernel=embedding sizes=64 width=4}' | filecheck %s --check-prefix=EMBEDDING

module {}

// Every word meets every threshold: the only branches are those of the loops over groups and over
// the table.
// GAUSSIAN:      llvm.func @gaussian(
// GAUSSIAN-COUNT-2: llvm.cond_br
// GAUSSIAN-NOT:  llvm.cond_br
// GAUSSIAN:      %[[MASK:.*]] = llvm.icmp "uge" %{{.*}}, %[[T:.*]] : vector<8xi64>
// GAUSSIAN-NEXT: %[[MINUS:.*]] = llvm.sext %[[MASK]] : vector<8xi1> to vector<8xi64>
// GAUSSIAN-NEXT: llvm.sub %{{.*}}, %[[MINUS]] : vector<8xi64>
// GAUSSIAN-NEXT: llvm.icmp "uge" %{{.*}}, %[[T]] : vector<8xi64>
// GAUSSIAN-NOT:  llvm.cond_br
// GAUSSIAN:      llvm.func @gaussian_share

// The low digit of x: k = round(x 2^-40), x - k 2^40.
// DOUBLES:      %[[X:.*]] = llvm.bitcast %{{.*}} : vector<4xi64> to vector<4xf64>
// DOUBLES-NEXT: %[[S:.*]] = llvm.fmul %[[X]], %{{.*}} : vector<4xf64>
// DOUBLES-NEXT: %[[K:.*]] = llvm.call_intrinsic "llvm.roundeven.v4f64"(%[[S]])
// DOUBLES-NEXT: llvm.intr.fma(%[[K]], %{{.*}}, %[[X]])

// A word is two halves, without a branch for any value.
// WORDS:      llvm.lshr %[[WORD:.*]], %{{.*}} : vector<4xi64>
// WORDS-NEXT: llvm.and %[[WORD]], %{{.*}} : vector<4xi64>

// Slots are gathered, the levels go over vectors, and the last ones follow a transposition.
// EMBEDDING:      llvm.func @embedding(
// EMBEDDING-NOT:  llvm.shufflevector %{{.*}} [0, 4, 2, 6]
// EMBEDDING:      llvm.intr.fma
// EMBEDDING:      llvm.shufflevector %{{.*}} [0, 4, 2, 6]
// EMBEDDING:      llvm.intr.fma
// EMBEDDING:      %[[R:.*]] = llvm.call_intrinsic "llvm.roundeven.v4f64"(
// EMBEDDING:      llvm.store %[[R]], %{{.*}} : vector<4xf64>, !llvm.ptr
// EMBEDDING:      llvm.func @embedding_share
