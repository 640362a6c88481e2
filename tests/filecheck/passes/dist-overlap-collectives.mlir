// RUN: %opt %s -p dist-overlap-collectives | filecheck %s
// RUN: %opt %s -p dist-overlap-collectives,dist-overlap-collectives,dist-verify-spmd | filecheck %s

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>

// Each starts as soon as it can, and is waited for when nothing else is left. They keep their order.
// CHECK-LABEL: func.func @two
// CHECK-NEXT:    %y = ckks.negate %x
// CHECK-NEXT:    %0 = dist.start {
// CHECK-NEXT:      %1 = dist.all_reduce_add_ciphertext %y in %group
// CHECK-NEXT:      dist.yield %1
// CHECK-NEXT:    } : !dist.pending<!ct_L1_s6>
// CHECK-NEXT:    %n = ckks.negate %u
// CHECK-NEXT:    %k = ckks.add %n, %x
// CHECK-NEXT:    %2 = dist.start {
// CHECK-NEXT:      %3 = dist.all_reduce_add_ciphertext %k in %group
// CHECK-NEXT:      dist.yield %3
// CHECK-NEXT:    } : !dist.pending<!ct_L1_s6>
// CHECK-NEXT:    %c = ckks.add %k, %u
// CHECK-NEXT:    %s = dist.wait %0 : !ct_L1_s6
// CHECK-NEXT:    %a = ckks.add %s, %y
// CHECK-NEXT:    %t = dist.wait %2 : !ct_L1_s6
// CHECK-NEXT:    %b = ckks.add %t, %a
// CHECK-NEXT:    func.return %b, %c
func.func @two(%x: !ct, %u: !ct, %group: !dist.group) -> (!ct, !ct) {
  %n = ckks.negate %u : !ct
  %y = ckks.negate %x : !ct
  %s = dist.all_reduce_add_ciphertext %y in %group : !ct
  %a = ckks.add %s, %y : !ct
  %k = ckks.add %n, %x : !ct
  %t = dist.all_reduce_add_ciphertext %k in %group : !ct
  %b = ckks.add %t, %a : !ct
  %c = ckks.add %k, %u : !ct
  func.return %b, %c : !ct, !ct
}

// A result of which another message is made: the first is waited for before the second starts.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    %0 = dist.start {
// CHECK:         %n = ckks.negate %u
// CHECK-NEXT:    %s = dist.wait %0
// CHECK-NEXT:    %t = dist.broadcast %s from 0 in %group
// CHECK-NEXT:    func.return %t, %n
func.func @chain(%x: !ct, %u: !ct, %group: !dist.group) -> (!ct, !ct) {
  %s = dist.all_reduce_add_ciphertext %x in %group : !ct
  %t = dist.broadcast %s from 0 in %group : !ct
  %n = ckks.negate %u : !ct
  func.return %t, %n : !ct, !ct
}

// Inside control flow, with a combine region that uses a value from around it.
// CHECK-LABEL: func.func @in_a_loop
// CHECK:         scf.for
// CHECK-NEXT:      %0 = dist.start {
// CHECK-NEXT:        %1 = dist.all_reduce %partial in %group : !ct_L1_s6 combine {
// CHECK:               %{{.*}} = ckks.add %{{.*}}, %same
// CHECK:           } : !dist.pending<!ct_L1_s6>
// CHECK-NEXT:      %n = ckks.negate %x
// CHECK-NEXT:      %s = dist.wait %0
// CHECK-NEXT:      %t = ckks.add %s, %n
// CHECK-NEXT:      scf.yield %t
func.func @in_a_loop(%x: !ct, %group: !dist.group) -> !ct {
  %same = dist.broadcast %x from 0 in %group : !ct
  %from = arith.constant 0 : index
  %to = arith.constant 3 : index
  %r = scf.for %i = %from to %to step %to iter_args(%partial = %x) -> (!ct) {
    %n = ckks.negate %x : !ct
    %s = dist.all_reduce %partial in %group : !ct combine {
    ^bb0(%a: !ct, %b: !ct):
      %c = ckks.add %a, %same : !ct
      dist.yield %c : !ct
    }
    %t = ckks.add %s, %n : !ct
    scf.yield %t : !ct
  }
  func.return %r : !ct
}

// Nothing to run beside it: the block stays as it is, constants and all.
// CHECK-LABEL: func.func @alone
// CHECK-NEXT:    %n = ckks.negate %x
// CHECK-NEXT:    %s = dist.all_reduce_add_ciphertext %n in %group
// CHECK-NEXT:    %c = arith.constant 1 : index
// CHECK-NEXT:    %t = ckks.add %s, %n
// CHECK-NEXT:    func.return %t, %c
func.func @alone(%x: !ct, %group: !dist.group) -> (!ct, index) {
  %n = ckks.negate %x : !ct
  %s = dist.all_reduce_add_ciphertext %n in %group : !ct
  %c = arith.constant 1 : index
  %t = ckks.add %s, %n : !ct
  func.return %t, %c : !ct, index
}

// An op with an effect, and one that overwrites its operand, are passed by nothing.
// CHECK-LABEL: func.func @fences
// CHECK-NEXT:    %s = dist.all_reduce_add_ciphertext %x in %group
// CHECK-NEXT:    dist.barrier in %group
// CHECK-NEXT:    %t = dist.all_reduce_add_ciphertext %y in %group
// CHECK-NEXT:    %m = ckks.negate %x {fhelium.in_place}
// CHECK-NEXT:    %n = ckks.negate %y
// CHECK-NEXT:    func.return %s, %t, %n, %m
func.func @fences(%x: !ct, %y: !ct, %group: !dist.group) -> (!ct, !ct, !ct, !ct) {
  %s = dist.all_reduce_add_ciphertext %x in %group : !ct
  dist.barrier in %group
  %t = dist.all_reduce_add_ciphertext %y in %group : !ct
  %m = ckks.negate %x {fhelium.in_place} : !ct
  %n = ckks.negate %y : !ct
  func.return %s, %t, %n, %m : !ct, !ct, !ct, !ct
}

// Where a collective runs moves to its start: a region runs on one device.
// CHECK-LABEL: func.func @placed
// CHECK-NEXT:    %0 = dist.start attributes {mem.device = @gpu0} {
// CHECK-NEXT:      %1 = dist.all_reduce_add_ciphertext %x in %group : !ct_L1_s6
func.func @placed(%x: !ct, %group: !dist.group) -> (!ct, !ct) {
  %s = dist.all_reduce_add_ciphertext %x in %group {mem.device = @gpu0} : !ct
  %n = ckks.negate %x : !ct
  func.return %s, %n : !ct, !ct
}
