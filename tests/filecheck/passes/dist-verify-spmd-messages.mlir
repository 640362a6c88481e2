// RUN: %opt %s -p 'dist-verify-spmd{ranks=4}' | filecheck %s

// Each message that a rank sends is received, in order.

// CHECK-LABEL: func.func @pair
func.func @pair(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.if %first {
    dist.send %x to 1 in %world tag 3 : f64
    %y = dist.recv from 1 in %world : f64
  }
  scf.if %second {
    %y = dist.recv from 0 in %world tag 3 : f64
    dist.send %y to 0 in %world : f64
  }
  dist.barrier in %world
  func.return
}

// A function that half of the ranks call, with tensors of sizes that only the sender knows.
// CHECK-LABEL: func.func @calls
func.func @calls(%x: tensor<4xf64>) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %two = arith.constant 2 : index
  %low = arith.cmpi slt, %r, %two : index
  scf.if %low {
    func.call @exchange(%x) : (tensor<4xf64>) -> ()
  }
  func.return
}
// CHECK-LABEL: func.func @exchange
func.func @exchange(%x: tensor<4xf64>) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %zero : index
  scf.if %first {
    dist.send %x to 1 in %world : tensor<4xf64>
  } else {
    %y = dist.recv from 0 in %world : tensor<?xf64>
  }
  func.return
}

// The same exchange as often as all ranks agree to.
// CHECK-LABEL: func.func @agreed_loop
func.func @agreed_loop(%x: f64, %n: index) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = dist.broadcast %n from 0 in %world : index
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.for %i = %zero to %end step %one {
    scf.if %first {
      dist.send %x to 1 in %world : f64
    }
    scf.if %second {
      %y = dist.recv from 0 in %world : f64
    }
  }
  func.return
}

// Loops whose bounds follow from the rank: rank r sends 3 - r messages to rank 3, which takes six.
// CHECK-LABEL: func.func @counted
func.func @counted(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %size = dist.group_size %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %last = arith.subi %size, %one : index
  %mine = arith.subi %last, %r : index
  scf.for %i = %zero to %mine step %one {
    dist.send %x to 3 in %world : f64
  }
  %is_last = arith.cmpi eq, %r, %last : index
  scf.if %is_last {
    %a = dist.recv from 2 in %world : f64
    %b = dist.recv from 1 in %world : f64
    %c = dist.recv from 1 in %world : f64
    %d = dist.recv from 0 in %world : f64
    %e = dist.recv from 0 in %world : f64
    %f = dist.recv from 0 in %world : f64
  }
  func.return
}

// Within halves of the group, by ranks of the half; a collective of one half alone.
// CHECK-LABEL: func.func @halves
func.func @halves(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %color = arith.floordivsi %r, %two : index
  %half = dist.split %world by %color, %r
  %place = dist.rank %half
  %first = arith.cmpi eq, %place, %zero : index
  scf.if %first {
    dist.send %x to 1 in %half : f64
  } else {
    %y = dist.recv from 0 in %half : f64
  }
  %low = arith.cmpi eq, %color, %zero : index
  scf.if %low {
    %z = dist.broadcast %x from 1 in %half : f64
  }
  func.return
}

// What one rank does by itself meets no other: a loop of calls, as often as it likes.
// CHECK-LABEL: func.func @alone
func.func @alone(%x: f64, %n: index) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.cmpi eq, %r, %zero : index
  %second = arith.cmpi eq, %r, %one : index
  scf.if %first {
    scf.for %i = %zero to %n step %one {
      %z = func.call @pure(%x) : (f64) -> f64
    }
    dist.send %x to 1 in %world : f64
  }
  scf.if %second {
    %y = dist.recv from 0 in %world : f64
  }
  func.return
}
// CHECK-LABEL: func.func @pure
func.func @pure(%x: f64) -> f64 {
  func.return %x : f64
}

// A half whose ranks agree on a loop, which the others do not run.
// CHECK-LABEL: func.func @half_agrees
func.func @half_agrees(%x: f64, %n: index) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %color = arith.floordivsi %r, %two : index
  %half = dist.split %world by %color, %r
  %place = dist.rank %half
  %first = arith.cmpi eq, %place, %zero : index
  %low = arith.cmpi eq, %color, %zero : index
  scf.if %low {
    %end = dist.broadcast %n from 0 in %half : index
    scf.for %i = %zero to %end step %one {
      scf.if %first {
        dist.send %x to 1 in %half : f64
      } else {
        %y = dist.recv from 0 in %half : f64
      }
    }
  }
  func.return
}

// Bits, negated; and a part that either branch makes.
// CHECK-LABEL: func.func @bits
func.func @bits(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %yes = arith.constant true
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %last_bit = arith.remui %r, %two : index
  %odd = arith.index_cast %last_bit : index to i1
  %even = arith.xori %odd, %yes : i1
  %pair = arith.floordivsi %r, %two : index
  %side = arith.remsi %r, %two : index
  scf.if %even {
    %part = dist.split %world by %pair, %side
    dist.send %x to 1 in %part : f64
  } else {
    %part = dist.split %world by %pair, %side
    %y = dist.recv from 0 in %part : f64
  }
  func.return
}
