// RUN: %opt %s -p canonicalize | filecheck %s
// RUN: %opt %s -p cse,dce | filecheck %s --check-prefix=CSE

// transfer(transfer(x, d, s), d, s) -> transfer(x, d, s)

// CHECK-LABEL: func.func @repeated
// CHECK-NEXT:  %a = mem.transfer %x to %device in pinned_host : i32
// CHECK-NEXT:  func.return %a : i32
func.func @repeated(%x: i32, %device: !mem.device) -> i32 {
  %a = mem.transfer %x to %device in pinned_host : i32
  %b = mem.transfer %a to %device in pinned_host : i32
  func.return %b : i32
}

// CHECK-LABEL: func.func @another_device
// CHECK:       mem.transfer
// CHECK-NEXT:  mem.transfer
func.func @another_device(%x: i32, %d: !mem.device, %e: !mem.device) -> i32 {
  %a = mem.transfer %x to %d : i32
  %b = mem.transfer %a to %e : i32
  func.return %b : i32
}

// CHECK-LABEL: func.func @another_space
// CHECK:       mem.transfer
// CHECK-NEXT:  mem.transfer
func.func @another_space(%x: i32, %device: !mem.device) -> i32 {
  %a = mem.transfer %x to %device : i32
  %b = mem.transfer %a to %device in pinned_host : i32
  func.return %b : i32
}

// A transfer is pure: equal ones merge, unused ones go.

// CSE-LABEL: func.func @pure
// CSE-NEXT:  %a = mem.transfer %x to %device : i32
// CSE-NEXT:  %c = mem.transfer %x to %device in pinned_host : i32
// CSE-NEXT:  func.return %a, %a, %c : i32, i32, i32
// CHECK-LABEL: func.func @pure
func.func @pure(%x: i32, %device: !mem.device) -> (i32, i32, i32) {
  %a = mem.transfer %x to %device : i32
  %b = mem.transfer %x to %device : i32
  %c = mem.transfer %x to %device in pinned_host : i32
  %unused = mem.transfer %x to %device in pageable_host : i32
  func.return %a, %b, %c : i32, i32, i32
}
