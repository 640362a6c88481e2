// RUN: %opt %s -p 'dist-verify-spmd{ranks=3}' --split-input-file --verify-diagnostics

// Nobody receives.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %zero : index
  scf.if %first {
    // expected-error@+1 {{pass dist-verify-spmd: on 3 ranks dist.send may wait for ever: rank 0 sends to rank 1, which has ended: pair each dist.send with a dist.recv, in one order on both ranks}}
    dist.send %x to 1 in %world : f64
  }
  func.return
}

// -----

// The third rank receives too.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %zero : index
  scf.if %first {
    dist.send %x to 1 in %world : f64
  } else {
    // expected-error@+1 {{on 3 ranks dist.recv may wait for ever: rank 2 receives from rank 0, which has ended}}
    %y = dist.recv from 0 in %world : f64
  }
  func.return
}

// -----

// Both send first.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.if %first {
    // expected-error@+1 {{rank 0 sends to rank 1, which waits in dist.send to rank 0}}
    dist.send %x to 1 in %world : f64
    %y = dist.recv from 1 in %world : f64
  }
  scf.if %second {
    dist.send %x to 0 in %world : f64
    %y = dist.recv from 0 in %world : f64
  }
  func.return
}

// -----

// A collective comes between.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.if %first {
    // expected-error@+1 {{rank 0 sends to rank 1, which waits in dist.barrier}}
    dist.send %x to 1 in %world : f64
  }
  dist.barrier in %world
  scf.if %second {
    %y = dist.recv from 0 in %world : f64
  }
  func.return
}

// -----

// Another tag, another type.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.if %first {
    dist.send %x to 1 in %world tag 4 : f64
  }
  scf.if %second {
    // expected-error@+1 {{found tag 5, expected 4: the next message from rank 0 to rank 1 has that tag, and messages arrive in order}}
    %y = dist.recv from 0 in %world tag 5 : f64
  }
  func.return
}

// -----

func.func @main(%x: tensor<4xf64>) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.if %first {
    dist.send %x to 1 in %world : tensor<4xf64>
  }
  scf.if %second {
    // expected-error@+1 {{found a dist.recv of tensor<3xf64>, expected tensor<4xf64>: that is the type of the next message from rank 0 to rank 1}}
    %y = dist.recv from 0 in %world : tensor<3xf64>
  }
  func.return
}

// -----

// Peers that are not there.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %zero : index
  scf.if %first {
    // expected-error@+1 {{found peer 3 of dist.send, expected 0 to 2: the group has 3 ranks}}
    dist.send %x to 3 in %world : f64
  }
  func.return
}

// -----

func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  // expected-error@+1 {{dist.send on rank 1 names rank 1 itself: a message has two ends}}
  dist.send %x to 1 in %world : f64
  func.return
}

// -----

// A condition of which nothing is known.
func.func @main(%x: f64, %go: i1) {
  %world = fhelium.resource @world : !dist.group
  scf.if %go {
    // expected-error@+1 {{dist.send is inside scf.if, and whether it has a partner is not known: %go may differ between ranks, since each rank passes its own argument to @main: steer messages by dist.rank and constants, or make the value equal with dist.broadcast}}
    dist.send %x to 1 in %world : f64
  }
  func.return
}

// -----

// A loop that all ranks run alike, in which a message stays behind.
func.func @main(%x: f64, %n: index) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = dist.broadcast %n from 0 in %world : index
  %first = arith.cmpi eq, %r, %zero : index
  scf.for %i = %zero to %end step %one {
    scf.if %first {
      // expected-error@+1 {{rank 0 sends to rank 1, which waits in scf.for}}
      dist.send %x to 1 in %world : f64
    }
  }
  func.return
}

// -----

// A group of ranks that are not known.
func.func @main(%x: f64, %n: index) {
  %world = fhelium.resource @world : !dist.group
  %half = dist.split %world by %n, %n
  // expected-error@+1 {{the ranks of %half are not known here: name the group with fhelium.resource, or split it by numbers that follow from the rank}}
  dist.send %x to 1 in %half : f64
  func.return
}
