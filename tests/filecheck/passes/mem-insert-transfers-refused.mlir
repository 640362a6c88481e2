// RUN: %opt %s --split-input-file -p mem-insert-transfers --verify-diagnostics

func.func @main(%x: tensor<2xi64>) {
  %key = fhelium.resource @gpu1 : !ckks.key<rotation, 1>
  // expected-error@+1 {{tensor.cast names the device @gpu1, found fhelium.resource @gpu1 : !ckks.key<rotation, 1>, expected the name of a device: call one of them something else}}
  %y = tensor.cast %x {mem.device = @gpu1} : tensor<2xi64> to tensor<2xi64>
  func.return
}

// -----

func.func @main(%i: index) {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  // expected-error@+1 {{found mem.device on arith.addi, which has no device of its own: write it on the ops that compute data}}
  %j = arith.addi %i, %i {mem.device = @gpu0} : index
  func.return
}

// -----

func.func @main(%x: tensor<2xi64>) {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  // expected-error@+1 {{tensor.cast: found mem.space = #mem<space pinned_host> without mem.device, expected both: name the device that the space belongs to}}
  %y = tensor.cast %x {mem.space = #mem<space pinned_host>} : tensor<2xi64> to tensor<2xi64>
  func.return
}

// -----

func.func @main(%x: tensor<2xi64>) {
  // expected-error@+1 {{tensor.cast: found mem.device = "gpu0", expected the name of a device, such as @gpu0}}
  %y = tensor.cast %x {mem.device = "gpu0"} : tensor<2xi64> to tensor<2xi64>
  func.return
}

// -----

func.func @main(%x: tensor<2xi64>) {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  // expected-error@+1 {{tensor.cast: found mem.space = "pinned", expected a memory space, such as #mem<space pinned_host>}}
  %y = tensor.cast %x {mem.device = @gpu0, mem.space = "pinned"} : tensor<2xi64> to tensor<2xi64>
  func.return
}

// -----

// expected-error@+1 {{found mem.device on argument 0 of @main of type index, expected it on data alone}}
func.func @main(%x: index {mem.device = @gpu0}) {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  func.return
}

// -----

!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
func.func @main(%x: !ct) {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  %gpu1 = fhelium.resource @gpu1 : !mem.device
  %key = fhelium.resource @key : !ckks.key<rotation, 1>
  %a = ckks.rotate %x by 1 with %key {mem.device = @gpu0} : !ct, !ckks.key<rotation, 1>
  // expected-error@+1 {{found key @key on @gpu0 and used on @gpu1, but keys can't move: name a resource for each device, and bind the key there}}
  %b = ckks.rotate %x by 1 with %key {mem.device = @gpu1} : !ct, !ckks.key<rotation, 1>
  func.return
}

// -----

!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
func.func @main(%x: !ct, %n: index) -> !ct {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  %r = scf.for %i = %n to %n step %n iter_args(%acc = %x) -> (!ct) {
    %s = ckks.negate %acc {mem.device = @gpu0} : !ct
    // expected-error@+1 {{found a value on @gpu0 for operand 0 of scf.yield, expected it on a device that is not known: write mem.device, or give the option default}}
    scf.yield %s : !ct
  }
  func.return %r : !ct
}

// -----

!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
func.func @main(%x: !ct) -> !ct {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  // expected-error@+1 {{found fhelium.in_place where values move, expected none yet, as a transfer may share words with its operand: run fhelium-assign-in-place after this pass}}
  %s = ckks.negate %x {mem.device = @gpu0, fhelium.in_place} : !ct
  func.return %s : !ct
}

// -----

!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
func.func @main(%x: !ct {mem.device = @gpu0}) -> !ct {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  %gpu1 = fhelium.resource @gpu1 : !mem.device
  %world = fhelium.resource @world : !dist.group
  %p = dist.start {
    // expected-error@+1 {{found mem.device = @gpu1 in a region of dist.start, which runs on one device: write it on dist.start}}
    %s = dist.broadcast %x from 0 in %world {mem.device = @gpu1} : !ct
    dist.yield %s : !ct
  } : !dist.pending<!ct>
  %w = dist.wait %p : !ct
  func.return %w : !ct
}

// -----

!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
func.func @main(%x: !ct {mem.device = @gpu0}) -> !ct {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  %gpu1 = fhelium.resource @gpu1 : !mem.device
  %world = fhelium.resource @world : !dist.group
  %p = dist.start {
    %s = dist.broadcast %x from 0 in %world : !ct
    dist.yield %s : !ct
  } : !dist.pending<!ct>
  // expected-error@+1 {{found a started collective that is used on @gpu1, which can't move: write mem.device on the dist.start}}
  %w = dist.wait %p {mem.device = @gpu1} : !ct
  func.return %w : !ct
}

// -----

// expected-error@+1 {{found 2 blocks in @main, expected one: use scf for control flow}}
func.func @main(%x: tensor<2xi64>) {
  "cf.br"() [^end] : () -> ()
^end:
  func.return
}

// -----

func.func private @elsewhere(%x: tensor<2xi64>)
func.func @main(%x: tensor<2xi64> {mem.device = @gpu0}) {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  // expected-error@+1 {{found a value on @gpu0 for operand 0 of func.call, expected it on a device that is not known: write mem.device, or give the option default}}
  func.call @elsewhere(%x) : (tensor<2xi64>) -> ()
  func.return
}

// -----

// expected-error@+1 {{found mem.device on result 0 of @main of type index, expected it on data alone}}
func.func @main(%x: index) -> (index {mem.device = @gpu0}) {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  func.return %x : index
}

// -----

// expected-error@+1 {{argument 0 of @main names the device @gpu0, found fhelium.resource @gpu0 : !dist.group, expected the name of a device: call one of them something else}}
func.func @main(%x: tensor<2xi64> {mem.device = @gpu0}) {
  %group = fhelium.resource @gpu0 : !dist.group
  func.return
}

// -----

// expected-error@+1 {{result 0 of @main: found mem.device = @gpu0::@part, expected the name of a device, such as @gpu0}}
func.func @main(%x: tensor<2xi64>) -> (tensor<2xi64> {mem.device = @gpu0::@part}) {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  func.return %x : tensor<2xi64>
}

// -----

func.func @main(%x: tensor<2xi64>) {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  // expected-error@+1 {{found mem.device on mem.transfer, which has no device of its own: write it on the ops that compute data, or on arguments and results of functions}}
  %y = mem.transfer %x to %gpu0 {mem.device = @gpu0} : tensor<2xi64>
  func.return
}

// -----

// expected-error@+1 {{found mem.device on func.func, which has no device of its own: write it on the ops that compute data, or on arguments and results of functions}}
func.func @main(%x: tensor<2xi64>) attributes {mem.device = @gpu0} {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  func.return
}

// -----

!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
!key = !ckks.key<rotation, 1>
func.func @main(%x: !ct) {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  %gpu1 = fhelium.resource @gpu1 : !mem.device
  %bound = fhelium.resource @key {mem.device = @gpu0} : !key
  // expected-error@+1 {{found key @key on @gpu0 and used on @gpu1, but keys can't move: name a resource for each device, and bind the key there}}
  %y = ckks.rotate %x by 1 with %bound {mem.device = @gpu1} : !ct, !key
  func.return
}

// -----

!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
!key = !ckks.key<rotation, 1>
func.func @main(%x: !ct) {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  %gpu1 = fhelium.resource @gpu1 : !mem.device
  %world = fhelium.resource @world : !dist.group
  %own = fhelium.resource @key : !key
  %received = dist.broadcast %own from 0 in %world {mem.device = @gpu0} : !key
  // expected-error@+1 {{found a received key on @gpu0 and used on @gpu1, but keys can't move: name a resource for each device, and bind the key there}}
  %y = ckks.rotate %x by 1 with %received {mem.device = @gpu1} : !ct, !key
  func.return
}

// -----

!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
func.func @main(%x: !ct {mem.device = @gpu0}, %c: i1) {
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  %gpu1 = fhelium.resource @gpu1 : !mem.device
  %r = scf.while (%a = %x) : (!ct) -> !ct {
    scf.condition(%c) %a : !ct
  } do {
  ^body(%b: !ct):
    // expected-error@+1 {{found mem.device = @gpu1 in a region of scf.while, which runs on one device: write it on scf.while}}
    %n = ckks.negate %b {mem.device = @gpu1} : !ct
    scf.yield %n : !ct
  }
  func.return
}

// -----

func.func @received() {
  %world = fhelium.resource @world : !dist.group
  %gpu0 = fhelium.resource @gpu0 : !mem.device
  // expected-error@+1 {{found mem.device on dist.recv, expected none: messages come where the group communicates; write it on the ops that use the value}}
  %x = dist.recv from 0 in %world {mem.device = @gpu0} : tensor<2xf64>
  func.return
}
