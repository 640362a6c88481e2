// RUN: %opt %s --split-input-file --verify-diagnostics

func.func @other() {
  // expected-error@+1 {{found a checkpoint in @other, expected one in the body of @main itself: loops, branches and other functions are parts of a stage}}
  fhelium.checkpoint "here"
  func.return
}

// -----

func.func @main(%go: i1) {
  scf.if %go {
    // expected-error@+1 {{found a checkpoint inside scf.if, expected one in the body of @main itself}}
    fhelium.checkpoint "here"
  }
  func.return
}

// -----

// expected-error@+1 {{found a checkpoint inside builtin.module, expected one in the body of @main}}
fhelium.checkpoint "here"

// -----

func.func @main(%x: f64, %color: index) {
  %world = fhelium.resource @world : !dist.group
  %half = dist.split %world by %color, %color
  // expected-error@+1 {{found a !dist.group that lives across the checkpoint, expected data alone: make it again behind the checkpoint, where it is used}}
  fhelium.checkpoint "here"
  %y = dist.broadcast %x from 0 in %half : f64
  %z = dist.broadcast %x from 0 in %world : f64
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{1 : i64 should be of base attribute string}}
  "fhelium.checkpoint"() <{label = 1 : i64}> : () -> ()
  func.return
}
