// RUN: %opt %s -p dist-verify-spmd --allow-unregistered-dialect --split-input-file --verify-diagnostics

// An op of another dialect that takes a group may talk in it, on some ranks only.
func.func @main(%x: f64, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  scf.if %go {
    // expected-error@+1 {{pass dist-verify-spmd: found mine.sum in @world, expected a collective, whose order on all ranks is checked: derive its class from fhelium.dialects.distributed.CollectiveOp}}
    %y = "mine.sum"(%x, %world) : (f64, !dist.group) -> f64
    scf.yield
  }
  func.return
}

// -----

// A registered one too, with other collectives beside it, in a part of a group.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %color = arith.constant 0 : index
  %part = dist.split %world by %color, %color
  %z = dist.broadcast %x from 0 in %part : f64
  // expected-error@+1 {{found test.op in %part, expected a collective}}
  %y = "test.op"(%x, %part) : (f64, !dist.group) -> f64
  func.return
}

// -----

// One without a group is nothing to talk in, and groups may be handed on.
func.func private @one(%group: !dist.group) -> !dist.group {
  func.return %group : !dist.group
}
func.func @main(%x: f64, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  %same = func.call @one(%world) : (!dist.group) -> !dist.group
  %rank = dist.rank %same
  scf.if %go {
    %y = "mine.sum"(%x) : (f64) -> f64
    scf.yield
  }
  func.return
}
