// RUN: %opt %s --split-input-file --verify-diagnostics -p ckks-list-required-keys | filecheck %s

// CHECK: error: pass ckks-list-required-keys: found the key @turn of type !ckks.key<rotation, 2>, and before it of type !ckks.key<rotation, 1>: a symbol stands for one key, so rename one of them
// CHECK-NEXT: %second = fhelium.resource @turn
%first = fhelium.resource @turn : !ckks.key<rotation, 1>
%second = fhelium.resource @turn : !ckks.key<rotation, 2>
"test.op"(%first, %second) : (!ckks.key<rotation, 1>, !ckks.key<rotation, 2>) -> ()
