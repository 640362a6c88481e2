// RUN: %roundtrip
// RUN: %generic-roundtrip
// RUN: %opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: %opt %s -p cse,canonicalize,dce | filecheck %s --check-prefix=KEPT

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!key = !ckks.key<rotation, 1>

// CHECK-LABEL:  func.func @groups
// KEPT-LABEL:   func.func @groups
func.func @groups(%group: !dist.group, %color: index, %key: index) {
  // CHECK-NEXT:   %row = dist.split %group by %color, %key {note}
  // GENERIC:      %row = "dist.split"(%group, %color, %key) {note} : (!dist.group, index, index) -> !dist.group
  // KEPT-NEXT:    dist.split %group by %color, %key {note}
  %row = dist.split %group by %color, %key {note}

  // KEPT-NEXT:    dist.split %group by %color, %key
  %unused = dist.split %group by %color, %key

  // CHECK:        dist.barrier in %row
  // CHECK-NEXT:   dist.barrier in %group {note}
  // GENERIC:      "dist.barrier"(%row) : (!dist.group) -> ()
  // GENERIC-NEXT: "dist.barrier"(%group) {note} : (!dist.group) -> ()
  // KEPT-NEXT:    dist.barrier in %row
  // KEPT-NEXT:    dist.barrier in %group
  dist.barrier in %row
  dist.barrier in %group {note}
  func.return
}

// CHECK-LABEL:  func.func @messages
// KEPT-LABEL:   func.func @messages
func.func @messages(%ct: !ct, %key: !key, %group: !dist.group) {
  // CHECK-NEXT:   dist.send %ct to 1 in %group : !ct_L1_s6
  // CHECK-NEXT:   dist.send %ct to 1 in %group tag 7 {note} : !ct_L1_s6
  // CHECK-NEXT:   dist.send %key to 0 in %group : !ckks.key<rotation, 1>
  // GENERIC:      "dist.send"(%ct, %group) <{peer = 1 : i64{{.*}}}> : (!ct_L1_s6, !dist.group) -> ()
  // GENERIC-NEXT: "dist.send"(%ct, %group) <{peer = 1 : i64, tag = 7 : i64}> {note} : (!ct_L1_s6, !dist.group) -> ()
  dist.send %ct to 1 in %group : !ct
  dist.send %ct to 1 in %group tag 7 {note} : !ct
  dist.send %key to 0 in %group : !key

  // CHECK-NEXT:   %a = dist.recv from 0 in %group tag 7 {note} : !ct_L1_s6
  // CHECK-NEXT:   %b = dist.recv from 0 in %group : !ckks.key<rotation, 1>
  // GENERIC:      %a = "dist.recv"(%group) <{peer = 0 : i64, tag = 7 : i64}> {note} : (!dist.group) -> !ct_L1_s6
  // KEPT:         dist.recv from 0 in %group tag 7
  // KEPT-NEXT:    dist.recv from 0 in %group
  // KEPT-NEXT:    func.return
  %a = dist.recv from 0 in %group tag 7 {note} : !ct
  %b = dist.recv from 0 in %group : !key
  func.return
}
