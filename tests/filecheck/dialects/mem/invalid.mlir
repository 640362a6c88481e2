// RUN: %opt %s --split-input-file --verify-diagnostics

func.func @resource(%group: !dist.group, %device: !mem.device) {
  // expected-error@+1 {{found a value of the resource type !dist.group, expected data: bind the resource on the device that it is needed on}}
  %moved = mem.transfer %group to %device : !dist.group
  func.return
}

// -----

func.func @result(%x: i32, %device: !mem.device) {
  // expected-error@+1 {{attribute i32 expected from variable 'T', but got i64}}
  %moved = "mem.transfer"(%x, %device) <{memory_space = #mem<space default>}> : (i32, !mem.device) -> i64
  func.return
}

// -----

func.func @device(%x: i32, %device: !dist.group) {
  // expected-error@+1 {{Expected attribute !mem.device but got !dist.group}}
  %moved = "mem.transfer"(%x, %device) <{memory_space = #mem<space default>}> : (i32, !dist.group) -> i32
  func.return
}

// -----

func.func @space(%x: i32, %device: !mem.device) {
  // expected-error@+1 {{found 'gpu', expected `default`, `pageable_host`, or `pinned_host`}}
  %moved = mem.transfer %x to %device in gpu : i32
  func.return
}

// -----

func.func @space_attribute(%x: i32, %device: !mem.device) {
  // expected-error@+1 {{should be of base attribute mem.space}}
  %moved = "mem.transfer"(%x, %device) <{memory_space = "gpu"}> : (i32, !mem.device) -> i32
  func.return
}
