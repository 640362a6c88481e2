// RUN: %opt %s --split-input-file --verify-diagnostics -p dist-verify-spmd

// Conditions and bounds that branches compute by themselves are the same where pure ops make them of
// the same values, the counters of such loops among them.
func.func @alike(%x: i64) -> i64 {
  %group = fhelium.resource @world : !dist.group
  %rank = dist.rank %group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 5 : index
  %m = arith.constant 6 : index
  %root = arith.cmpi eq, %rank, %zero : index
  %size = dist.group_size %group
  %k = arith.addi %size, %one : index
  %r = scf.if %root -> (i64) {
    %s = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (i64) {
      %j = arith.muli %i, %k : index
      %c = arith.cmpi slt, %j, %n : index
      %b = scf.if %c -> (i64) {
        %d = dist.broadcast %a from 0 in %group : i64
        scf.yield %d : i64
      } else {
        scf.yield %a : i64
      }
      scf.yield %b : i64
    }
    scf.yield %s : i64
  } else {
    %s = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (i64) {
      %j = arith.muli %i, %k : index
      %c = arith.cmpi slt, %j, %n : index
      %b = scf.if %c -> (i64) {
        %d = dist.broadcast %a from 0 in %group : i64
        scf.yield %d : i64
      } else {
        scf.yield %a : i64
      }
      scf.yield %b : i64
    }
    scf.yield %s : i64
  }
  func.return %r : i64
}

// What all ranks got of one message is the same.
func.func @agreed(%n: index) {
  %group = fhelium.resource @world : !dist.group
  %rank = dist.rank %group
  %zero = arith.constant 0 : index
  %root = arith.cmpi eq, %rank, %zero : index
  scf.if %root {
    %k = dist.broadcast %n from 0 in %group : index
    %c = arith.cmpi slt, %k, %zero : index
    scf.if %c {
      dist.barrier in %group
    }
  } else {
    %k = dist.broadcast %n from 0 in %group : index
    %c = arith.cmpi slt, %k, %zero : index
    scf.if %c {
      dist.barrier in %group
    }
  }
  func.return
}

// -----

// Not of another message.
func.func @other_message(%n: index) {
  %group = fhelium.resource @world : !dist.group
  %rank = dist.rank %group
  %zero = arith.constant 0 : index
  %root = arith.cmpi eq, %rank, %zero : index
  scf.if %root {
    // expected-error@+1 {{dist.broadcast in @world may run on some ranks only: the condition %root of scf.if may differ between ranks}}
    %k = dist.broadcast %n from 0 in %group : index
    %l = dist.broadcast %rank from 0 in %group : index
    %c = arith.cmpi slt, %k, %zero : index
    scf.if %c {
      dist.barrier in %group
    }
  } else {
    %k = dist.broadcast %n from 0 in %group : index
    %l = dist.broadcast %rank from 0 in %group : index
    %c = arith.cmpi slt, %l, %zero : index
    scf.if %c {
      dist.barrier in %group
    }
  }
  func.return
}

// -----

// Another comparison.
func.func @predicates(%x: i64) -> i64 {
  %group = fhelium.resource @world : !dist.group
  %rank = dist.rank %group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 5 : index
  %m = arith.constant 6 : index
  %root = arith.cmpi eq, %rank, %zero : index
  %size = dist.group_size %group
  %k = arith.addi %size, %one : index
  %r = scf.if %root -> (i64) {
    %s = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (i64) {
      %j = arith.muli %i, %k : index
      %c = arith.cmpi slt, %j, %n : index
      %b = scf.if %c -> (i64) {
        // expected-error@+1 {{dist.broadcast in @world may run on some ranks only: the condition %root of scf.if may differ between ranks}}
        %d = dist.broadcast %a from 0 in %group : i64
        scf.yield %d : i64
      } else {
        scf.yield %a : i64
      }
      scf.yield %b : i64
    }
    scf.yield %s : i64
  } else {
    %s = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (i64) {
      %j = arith.muli %i, %k : index
      %c = arith.cmpi sle, %j, %n : index
      %b = scf.if %c -> (i64) {
        %d = dist.broadcast %a from 0 in %group : i64
        scf.yield %d : i64
      } else {
        scf.yield %a : i64
      }
      scf.yield %b : i64
    }
    scf.yield %s : i64
  }
  func.return %r : i64
}

// -----

// Another number.
func.func @operands(%x: i64) -> i64 {
  %group = fhelium.resource @world : !dist.group
  %rank = dist.rank %group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 5 : index
  %m = arith.constant 6 : index
  %root = arith.cmpi eq, %rank, %zero : index
  %size = dist.group_size %group
  %k = arith.addi %size, %one : index
  %r = scf.if %root -> (i64) {
    %s = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (i64) {
      %j = arith.muli %i, %k : index
      %c = arith.cmpi slt, %j, %n : index
      %b = scf.if %c -> (i64) {
        // expected-error@+1 {{dist.broadcast in @world may run on some ranks only: the condition %root of scf.if may differ between ranks}}
        %d = dist.broadcast %a from 0 in %group : i64
        scf.yield %d : i64
      } else {
        scf.yield %a : i64
      }
      scf.yield %b : i64
    }
    scf.yield %s : i64
  } else {
    %s = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (i64) {
      %j = arith.muli %i, %size : index
      %c = arith.cmpi slt, %j, %n : index
      %b = scf.if %c -> (i64) {
        %d = dist.broadcast %a from 0 in %group : i64
        scf.yield %d : i64
      } else {
        scf.yield %a : i64
      }
      scf.yield %b : i64
    }
    scf.yield %s : i64
  }
  func.return %r : i64
}

// -----

// The counter of a loop that runs once more.
func.func @bounds(%x: i64) -> i64 {
  %group = fhelium.resource @world : !dist.group
  %rank = dist.rank %group
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 5 : index
  %m = arith.constant 6 : index
  %root = arith.cmpi eq, %rank, %zero : index
  %size = dist.group_size %group
  %k = arith.addi %size, %one : index
  %r = scf.if %root -> (i64) {
    %s = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (i64) {
      %j = arith.muli %i, %k : index
      %c = arith.cmpi slt, %j, %n : index
      %b = scf.if %c -> (i64) {
        // expected-error@+1 {{dist.broadcast in @world may run on some ranks only: the condition %root of scf.if may differ between ranks}}
        %d = dist.broadcast %a from 0 in %group : i64
        scf.yield %d : i64
      } else {
        scf.yield %a : i64
      }
      scf.yield %b : i64
    }
    scf.yield %s : i64
  } else {
    %s = scf.for %i = %zero to %m step %one iter_args(%a = %x) -> (i64) {
      %j = arith.muli %i, %k : index
      %c = arith.cmpi slt, %j, %n : index
      %b = scf.if %c -> (i64) {
        %d = dist.broadcast %a from 0 in %group : i64
        scf.yield %d : i64
      } else {
        scf.yield %a : i64
      }
      scf.yield %b : i64
    }
    scf.yield %s : i64
  }
  func.return %r : i64
}
