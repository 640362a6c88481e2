// RUN: %opt %s --split-input-file -p mem-insert-transfers | filecheck %s
// RUN: %opt %s --split-input-file -p mem-insert-transfers,mem-insert-transfers | filecheck %s

!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>

// One transfer serves all uses on a device; ops that say nothing follow their first operand, and
// the result goes back where its attribute says. Devices stand at the top.

// CHECK-LABEL: func.func @merge
// CHECK-NEXT:  %gpu0 = fhelium.resource @gpu0
// CHECK-NEXT:  %cpu0 = fhelium.resource @cpu0
// CHECK-NEXT:  %own = ckks.negate %y :
// CHECK-NEXT:  [[X:%x.*]] = mem.transfer %x to %gpu0 :
// CHECK-NEXT:  %a = ckks.add [[X]], [[X]] {mem.device = @gpu0}
// CHECK-NEXT:  [[Y:%y.*]] = mem.transfer %y to %gpu0 :
// CHECK-NEXT:  %b = ckks.add [[X]], [[Y]] {mem.device = @gpu0}
// CHECK-NEXT:  %c = ckks.add %a, [[Y]] :
// CHECK-NEXT:  [[C:%c.*]] = mem.transfer %c to %cpu0 :
// CHECK-NEXT:  func.return [[C]], %b
func.func @merge(%x: !ct {mem.device = @cpu0}, %y: !ct {mem.device = @cpu0})
    -> (!ct {mem.device = @cpu0}, !ct) {
  %own = ckks.negate %y : !ct
  %a = ckks.add %x, %x {mem.device = @gpu0} : !ct
  %b = ckks.add %x, %y {mem.device = @gpu0} : !ct
  %c = ckks.add %a, %y : !ct
  %cpu0 = fhelium.resource @cpu0 : !mem.device
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  func.return %c, %b : !ct, !ct
}

// -----

!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>

// Nothing says where anything is: nothing moves, also with numbers, constants and materials.

// CHECK-LABEL: func.func @untouched
// CHECK-NOT:   mem.transfer
// CHECK:       func.return
func.func @untouched(%x: !ct, %i: index) -> (!ct, index, tensor<2xi64>) {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  %j = arith.addi %i, %i : index
  %c = arith.constant dense<1> : tensor<2xi64>
  %w = fhelium.material @w : !ct
  %y = ckks.add %x, %w : !ct
  func.return %y, %j, %c : !ct, index, tensor<2xi64>
}

// -----

!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
func.func private @devices() {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  %gpu1 = fhelium.resource @gpu1 : !mem.device
  %cpu0 = fhelium.resource @cpu0 : !mem.device
  func.return
}

// A loop takes what it does not change once, and moves what it carries back each time, unless the
// loop itself says where that is.

// CHECK-LABEL: func.func @loops
// CHECK-NEXT:  %gpu0 = fhelium.resource @gpu0
// CHECK-NEXT:  %cpu0 = fhelium.resource @cpu0
// CHECK-NEXT:  [[X:%x.*]] = mem.transfer %x to %gpu0 :
// CHECK-NEXT:  %there = scf.for
// CHECK-NEXT:    [[A:%acc.*]] = mem.transfer %acc to %gpu0 :
// CHECK-NEXT:    %s = ckks.add [[A]], [[X]] {mem.device = @gpu0}
// CHECK-NEXT:    [[S:%s.*]] = mem.transfer %s to %cpu0 :
// CHECK-NEXT:    scf.yield [[S]]
// CHECK-NEXT:  }
// CHECK-NEXT:  [[T:%there.*]] = mem.transfer %there to %gpu0 :
// CHECK-NEXT:  %kept = scf.for {{.*}} iter_args({{.*}} = [[T]])
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      ckks.negate [[X]] {mem.device = @gpu0}
// CHECK-NEXT:    }
// CHECK-NEXT:    ckks.add
// CHECK-NEXT:    scf.yield
// CHECK-NEXT:  } {mem.device = @gpu0}
// CHECK-NEXT:  func.return %kept
func.func @loops(%x: !ct {mem.device = @cpu0}, %n: index) -> !ct {
  %there = scf.for %i = %n to %n step %n iter_args(%acc = %x) -> (!ct) {
    %s = ckks.add %acc, %x {mem.device = @gpu0} : !ct
    scf.yield %s : !ct
  }
  %kept = scf.for %i = %n to %n step %n iter_args(%acc = %there) -> (!ct) {
    scf.for %j = %n to %n step %n {
      %deep = ckks.negate %x {mem.device = @gpu0} : !ct
    }
    %s = ckks.add %acc, %x : !ct
    scf.yield %s : !ct
  } {mem.device = @gpu0}
  func.return %kept : !ct
}

// A value moves in the branch that alone needs it, before the branches when both do; both yield
// where the first does.

// CHECK-LABEL: func.func @branches
// CHECK-NEXT:  %gpu0 = fhelium.resource @gpu0
// CHECK-NEXT:  [[Y:%y.*]] = mem.transfer %y to %gpu0 :
// CHECK-NEXT:  %r = scf.if %c
// CHECK-NEXT:    [[X:%x.*]] = mem.transfer %x to %gpu0 :
// CHECK-NEXT:    %a = ckks.add [[X]], [[Y]] {mem.device = @gpu0}
// CHECK-NEXT:    scf.yield %a
// CHECK-NEXT:  } else {
// CHECK-NEXT:    scf.yield [[Y]]
// CHECK-NEXT:  }
// CHECK-NEXT:  func.return %r
func.func @branches(%x: !ct {mem.device = @cpu0}, %y: !ct {mem.device = @cpu0}, %c: i1) -> !ct {
  %r = scf.if %c -> (!ct) {
    %a = ckks.add %x, %y {mem.device = @gpu0} : !ct
    scf.yield %a : !ct
  } else {
    scf.yield %y : !ct
  }
  func.return %r : !ct
}

// A loop in a branch does not take its transfer out of the branch, a branch in a loop does.

// CHECK-LABEL: func.func @loop_and_branch
// CHECK:       scf.if
// CHECK-NEXT:    mem.transfer %x to %gpu0
// CHECK-NEXT:    scf.for
// CHECK:       mem.transfer %y to %gpu0
// CHECK-NEXT:  scf.for
// CHECK-NEXT:    scf.if
func.func @loop_and_branch(
    %x: !ct {mem.device = @cpu0}, %y: !ct {mem.device = @cpu0}, %c: i1, %n: index) {
  scf.if %c {
    scf.for %i = %n to %n step %n {
      %a = ckks.negate %x {mem.device = @gpu0} : !ct
    }
  }
  scf.for %i = %n to %n step %n {
    scf.if %c {
      %a = ckks.negate %y {mem.device = @gpu0} : !ct
    }
  }
  func.return
}

// Chains collapse, round trips go, and what the program moves already merges with the rest.

// CHECK-LABEL: func.func @chains
// CHECK-NEXT:  %gpu0 = fhelium.resource @gpu0
// CHECK-NEXT:  %gpu1 = fhelium.resource @gpu1
// CHECK-NEXT:  %d = fhelium.resource @cpu0
// CHECK-NEXT:  %back = ckks.negate %x :
// CHECK-NEXT:  [[X:%x.*]] = mem.transfer %x to %gpu1 :
// CHECK-NEXT:  ckks.negate [[X]] :
// CHECK-NEXT:  ckks.negate [[X]] {mem.device = @gpu1}
// CHECK-NEXT:  [[Z:%x.*]] = mem.transfer %x to %gpu0 :
// CHECK-NEXT:  func.return [[Z]]
func.func @chains(%x: !ct {mem.device = @cpu0}) -> !ct {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  %gpu1 = fhelium.resource @gpu1 : !mem.device
  %d = fhelium.resource @cpu0 : !mem.device
  %a = mem.transfer %x to %gpu0 : !ct
  %b = mem.transfer %a to %gpu1 : !ct
  %c = mem.transfer %b to %d : !ct
  %back = ckks.negate %c : !ct
  %there = ckks.negate %b : !ct
  %again = ckks.negate %x {mem.device = @gpu1} : !ct
  func.return %a : !ct
}

// A host space is kept as a stage on the way; any space of a device serves an op there.

// CHECK-LABEL: func.func @spaces
// CHECK-NEXT:  %cpu0 = fhelium.resource @cpu0
// CHECK-NEXT:  %gpu0 = fhelium.resource @gpu0
// CHECK-NEXT:  %here = ckks.negate %y :
// CHECK-NEXT:  %p = mem.transfer %x to %cpu0 in pinned_host :
// CHECK-NEXT:  [[P:%p.*]] = mem.transfer %p to %gpu0 :
// CHECK-NEXT:  %a = ckks.negate [[P]] {mem.device = @gpu0}
// CHECK-NEXT:  [[Y:%y.*]] = mem.transfer %y to %cpu0 in pageable_host :
// CHECK-NEXT:  %b = ckks.negate [[Y]] {mem.device = @cpu0, mem.space = #mem<space pageable_host>}
// CHECK-NEXT:  [[A:%a.*]] = mem.transfer %a to %cpu0 in pinned_host :
// CHECK-NEXT:  func.return [[A]], %y
func.func @spaces(%x: !ct, %y: !ct {mem.device = @cpu0, mem.space = #mem<space pinned_host>})
    -> (!ct {mem.device = @cpu0, mem.space = #mem<space pinned_host>}, !ct {mem.device = @cpu0}) {
  %cpu0 = fhelium.resource @cpu0 : !mem.device
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  %here = ckks.negate %y : !ct
  %before = mem.transfer %x to %gpu0 : !ct
  %p = mem.transfer %before to %cpu0 in pinned_host : !ct
  %a = ckks.negate %p {mem.device = @gpu0} : !ct
  %b = ckks.negate %y {mem.device = @cpu0, mem.space = #mem<space pageable_host>} : !ct
  func.return %a, %y : !ct, !ct
}

// Calls take and return what the attributes of the function say. Numbers stay where they are.

// CHECK-LABEL: func.func @called
func.func @called(%x: !ct {mem.device = @gpu0}, %i: index) -> (!ct {mem.device = @gpu1}) {
  // CHECK:      [[X:%x.*]] = mem.transfer %x to %gpu1
  // CHECK-NEXT: func.return [[X]]
  func.return %x : !ct
}

// CHECK-LABEL: func.func @call
// CHECK:       [[X:%x.*]] = mem.transfer %x to %gpu0
// CHECK-NEXT:  %a = func.call @called([[X]], %i)
// CHECK-NEXT:  %b = ckks.negate %a {mem.device = @gpu1}
func.func @call(%x: !ct {mem.device = @cpu0}, %i: index) -> !ct {
  %a = func.call @called(%x, %i) : (!ct, index) -> !ct
  %b = ckks.negate %a {mem.device = @gpu1} : !ct
  func.return %b : !ct
}

// A collective moves its payload first; what runs inside an op runs on its device, and captures
// come from there.

// CHECK-LABEL: func.func @collectives
// CHECK:       %world = fhelium.resource @world
// CHECK-NEXT:  %cpu0 = fhelium.resource @cpu0
// CHECK-NEXT:  [[X:%x.*]] = mem.transfer %x to %cpu0 :
// CHECK-NEXT:  %a = dist.broadcast [[X]] from 0 in %world {mem.device = @cpu0}
// CHECK-NEXT:  %p = dist.start
// CHECK-NEXT:    dist.broadcast [[X]]
func.func @collectives(%x: !ct {mem.device = @gpu0}) -> (!ct, !ct) {
  %world = fhelium.resource @world : !dist.group
  %a = dist.broadcast %x from 0 in %world {mem.device = @cpu0} : !ct
  %p = dist.start attributes {mem.device = @cpu0} {
    %s = dist.broadcast %x from 0 in %world : !ct
    dist.yield %s : !ct
  } : !dist.pending<!ct>
  %w = dist.wait %p : !ct
  func.return %a, %w : !ct, !ct
}

// Materials can be placed, and a key stays on the one device that uses it.

// CHECK-LABEL: func.func @outside
// CHECK:       %w = fhelium.material @w {mem.device = @gpu1}
// CHECK-NEXT:  [[W:%w.*]] = mem.transfer %w to %gpu0 :
// CHECK-NEXT:  %a = ckks.add [[W]], [[W]] {mem.device = @gpu0}
// CHECK-NEXT:  %b = ckks.rotate %a by 1 with %key :
func.func @outside() -> !ct {
  %key = fhelium.resource @key : !ckks.key<rotation, 1>
  %w = fhelium.material @w {mem.device = @gpu1} : !ct
  %a = ckks.add %w, %w {mem.device = @gpu0} : !ct
  %b = ckks.rotate %a by 1 with %key : !ct, !ckks.key<rotation, 1>
  func.return %b : !ct
}

// -----

// A group may have the name that a device has in another function.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:  %g = fhelium.resource @d : !dist.group
// CHECK-NEXT:  %d = fhelium.resource @d : !mem.device
// CHECK-NEXT:  dist.barrier in %g
// CHECK-NEXT:  [[X:%x.*]] = mem.transfer %x to %d :
// CHECK-NEXT:  %y = arith.addf [[X]], [[X]] {mem.device = @d}
func.func @other() {
  %d = fhelium.resource @d : !mem.device
  func.return
}
func.func @main(%x: tensor<2xf64>) -> tensor<2xf64> {
  %g = fhelium.resource @d : !dist.group
  dist.barrier in %g
  %y = arith.addf %x, %x {mem.device = @d} : tensor<2xf64>
  func.return %y : tensor<2xf64>
}

// -----

// A message comes where the group communicates, and moves to where it is used.

// CHECK-LABEL: func.func @receive
// CHECK:       %q = dist.recv from 0 in %world :
// CHECK-NEXT:  [[Q:%q.*]] = mem.transfer %q to %d :
// CHECK-NEXT:  %s = arith.addf [[Q]], %x {mem.device = @d}
func.func @receive(%x: tensor<2xf64> {mem.device = @d}) -> tensor<2xf64> {
  %world = fhelium.resource @world : !dist.group
  %d = fhelium.resource @d : !mem.device
  %q = dist.recv from 0 in %world : tensor<2xf64>
  %s = arith.addf %q, %x {mem.device = @d} : tensor<2xf64>
  func.return %s : tensor<2xf64>
}

// -----

!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>

// Devices that no resource names, as nothing used those that did: they get one.

// CHECK-LABEL: func.func @unnamed
// CHECK-NEXT:  %gpu0 = fhelium.resource @gpu0 : !mem.device
// CHECK-NEXT:  %cpu0 = fhelium.resource @cpu0 : !mem.device
// CHECK-NEXT:  [[X:%x.*]] = mem.transfer %x to %gpu0 :
// CHECK-NEXT:  %y = ckks.add [[X]], [[X]] {mem.device = @gpu0}
// CHECK-NEXT:  [[Y:%y.*]] = mem.transfer %y to %cpu0 :
// CHECK-NEXT:  func.return [[Y]]
func.func @unnamed(%x: !ct {mem.device = @cpu0}) -> (!ct {mem.device = @cpu0}) {
  %y = ckks.add %x, %x {mem.device = @gpu0} : !ct
  func.return %y : !ct
}
