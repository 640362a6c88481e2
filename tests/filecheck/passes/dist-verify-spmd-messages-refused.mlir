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
  // expected-error@+1 {{the ranks of %half are not known here: name the group with fhelium.resource, split it by numbers that follow from the rank, or link with --no-verify-spmd if each message has its partner}}
  dist.send %x to 1 in %half : f64
  func.return
}

// -----

// The message is in a function that a condition, or a loop, calls.
func.func @main(%x: f64, %go: i1) {
  scf.if %go {
    func.call @pair(%x) : (f64) -> ()
  }
  func.return
}
func.func private @pair(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.if %first {
    // expected-error@+1 {{dist.send is inside scf.if, and whether it has a partner is not known: %go may differ between ranks}}
    dist.send %x to 1 in %world : f64
  }
  scf.if %second {
    %y = dist.recv from 0 in %world : f64
  }
  func.return
}

// -----

func.func @main(%x: f64, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    func.call @pair(%x) : (f64) -> ()
  }
  func.return
}
func.func private @pair(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.if %first {
    // expected-error@+1 {{dist.send is inside scf.for, and whether it has a partner is not known: %n may differ between ranks}}
    dist.send %x to 1 in %world : f64
  }
  scf.if %second {
    %y = dist.recv from 0 in %world : f64
  }
  func.return
}

// -----

// In an op of which nothing is known, behind a call.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  scf.index_switch %r
  case 0 {
    // expected-error@+1 {{func.call of @pair, which issues dist.send, is inside scf.index_switch, which may run it any number of times}}
    func.call @pair(%x) : (f64) -> ()
    scf.yield
  }
  default {
    scf.yield
  }
  func.return
}
func.func private @pair(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.if %first {
    dist.send %x to 1 in %world : f64
  }
  scf.if %second {
    %y = dist.recv from 0 in %world : f64
  }
  func.return
}

// -----

// Two groups of the same ranks.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %row = fhelium.resource @row : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.if %first {
    // expected-error@+1 {{rank 0 sends to rank 1, which waits in dist.recv from rank 0 in another group}}
    dist.send %x to 1 in %world : f64
  }
  scf.if %second {
    %y = dist.recv from 0 in %row : f64
  }
  func.return
}

// -----

// A part of a group is another group, though it has all ranks.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %part = dist.split %world by %zero, %r
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.if %first {
    // expected-error@+1 {{rank 0 sends to rank 1, which waits in dist.recv from rank 0 in another group}}
    dist.send %x to 1 in %world : f64
  }
  scf.if %second {
    %y = dist.recv from 0 in %part : f64
  }
  func.return
}

// -----

// Numbers keep to their types: 100 + 100 is less than 100 in an i8.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  %a = arith.constant 100 : i8
  %sum = arith.addi %a, %a : i8
  %more = arith.cmpi sgt, %sum, %a : i8
  %sends = arith.andi %first, %more : i1
  scf.if %sends {
    dist.send %x to 1 in %world : f64
  }
  scf.if %second {
    // expected-error@+1 {{on 3 ranks dist.recv may wait for ever: rank 1 receives from rank 0, which has ended}}
    %y = dist.recv from 0 in %world : f64
  }
  func.return
}

// -----

// A true i1 is less than a false one.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %no = arith.constant false
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  %sends = arith.cmpi sgt, %first, %no : i1
  scf.if %sends {
    dist.send %x to 1 in %world : f64
  }
  scf.if %second {
    // expected-error@+1 {{on 3 ranks dist.recv may wait for ever: rank 1 receives from rank 0, which has ended}}
    %y = dist.recv from 0 in %world : f64
  }
  func.return
}

// -----

// The root of a part that is followed.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %last = arith.cmpi sgt, %r, %one : index
  %color = arith.select %last, %one, %zero : index
  %part = dist.split %world by %color, %r
  // expected-error@+1 {{found root 1 of dist.broadcast, expected 0 to 0: the group of rank 2 has 1 rank}}
  %y = dist.broadcast %x from 1 in %part : f64
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.if %first {
    dist.send %x to 1 in %world : f64
  }
  scf.if %second {
    %z = dist.recv from 0 in %world : f64
  }
  func.return
}

// -----

// Each end has a loop of its own, and no iteration is followed by itself.
func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 65 : index
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.if %first {
    // expected-error@+1 {{messages in scf.for cannot be paired on 3 ranks: rank 0 waits before it for rank 1, which waits before scf.for: where it has more than 64 iterations, or numbers that are not known, all ranks go through it together: put it around what tells ranks apart, or link with --no-verify-spmd if each message has its partner}}
    scf.for %i = %zero to %many step %one {
      dist.send %x to 1 in %world : f64
    }
  }
  scf.if %second {
    scf.for %i = %zero to %many step %one {
      %y = dist.recv from 0 in %world : f64
    }
  }
  func.return
}

// -----

// One end has a loop, and its bound is not known.
func.func @main(%x: f64, %n: index) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = dist.broadcast %n from 0 in %world : index
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.if %first {
    // expected-error@+1 {{on 3 ranks dist.send may wait for ever: rank 0 sends to rank 1, which waits before scf.for: pair each dist.send with a dist.recv, in one order on both ranks; scf.for may hold one, but where it has more than 64 iterations, or numbers that are not known, all ranks go through it together}}
    dist.send %x to 1 in %world : f64
  }
  scf.if %second {
    scf.for %i = %zero to %end step %one {
      %y = dist.recv from 0 in %world : f64
    }
  }
  func.return
}

// -----

// A condition that is not known, in the branch of one rank, whose partner has ended.
func.func @main(%x: f64, %n: i1) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %go = dist.broadcast %n from 0 in %world : i1
  %first = arith.cmpi eq, %r, %zero : index
  scf.if %first {
    // expected-error@+1 {{messages in scf.if cannot be paired on 3 ranks: rank 0 waits before it for rank 1, which has ended: where it has more than 64 iterations}}
    scf.if %go {
      dist.send %x to 1 in %world : f64
    }
  }
  func.return
}

// -----

// A condition that was made equal in a part that is split anew each time.
func.func @main(%x: i1) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %first = arith.cmpi eq, %r, %zero : index
  scf.for %i = %zero to %two step %one {
    %part = dist.split %world by %zero, %r
    %go = dist.broadcast %x from 0 in %part : i1
    scf.if %go {
      scf.if %first {
        // expected-error@+1 {{dist.send is inside scf.if, and whether it has a partner is not known: %go may differ between ranks, since dist.broadcast makes it equal within %part, which is split inside scf.for and may be another part each time: move dist.split and what uses %part into a function, which scf.for calls}}
        dist.send %x to 1 in %part : i1
      }
    }
  }
  func.return
}
