// RUN: %opt %s --split-input-file --verify-diagnostics

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!poly = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
func.func @operands(%x: i32, %ct: !ct, %poly: !poly, %p: !ckks.plaintext, %group: !dist.group, %key: !ckks.key<relinearization>, %device: !mem.device, %secret: !ckks.client_key<secret>, %public: !ckks.client_key<public>) {
  // expected-error@+1 {{'dist.rank': operand 'group' at position 0 does not verify: Expected attribute !dist.group but got i32}}
  %a = "dist.rank"(%x) : (i32) -> index
  // expected-error@+1 {{'dist.group_size': result 'result' at position 0 does not verify: Expected attribute index but got i32}}
  %b = "dist.group_size"(%group) : (!dist.group) -> i32
  // expected-error@+1 {{'dist.rank': found a group of 0 ranks, expected at least 1}}
  %none = dist.rank %group of 0

  // expected-error@+1 {{'dist.broadcast': found root -1, expected a rank of the group, from 0 upwards}}
  %c = dist.broadcast %x from -1 in %group : i32
  // A switching key is public; the client's keys, groups and devices stay where they are.
  %switching = dist.broadcast %key from 0 in %group : !ckks.key<relinearization>
  // expected-error@+1 {{'dist.broadcast': found a payload of the resource type !ckks.client_key<secret>, expected data: bind the resource on every rank instead of sending it}}
  %d = dist.broadcast %secret from 0 in %group : !ckks.client_key<secret>
  // expected-error@+1 {{'dist.broadcast': found a payload of the resource type !ckks.client_key<public>, expected data: bind}}
  %d2 = dist.broadcast %public from 0 in %group : !ckks.client_key<public>
  // expected-error@+1 {{'dist.broadcast': found a payload of the resource type !dist.group, expected data: bind}}
  %d3 = dist.broadcast %group from 0 in %group : !dist.group
  // expected-error@+1 {{attribute i32 expected from variable 'T', but got i64}}
  %e = "dist.broadcast"(%x, %group) <{root = 0 : i64}> : (i32, !dist.group) -> i64
  // expected-error@+1 {{property 'root' expected in operation 'dist.broadcast'}}
  %f = "dist.broadcast"(%x, %group) : (i32, !dist.group) -> i32
  // expected-error@+1 {{Expected attribute !dist.group but got !mem.device}}
  %g = "dist.broadcast"(%x, %device) <{root = 0 : i64}> : (i32, !mem.device) -> i32

  // expected-error@+1 {{'dist.all_reduce_add_ciphertext': operand 'input' at position 0 does not verify: expected a ciphertext, or residue polynomials and their moduli; dist.all_reduce takes any data. Underlying verification failure: Unexpected attribute !ckks.plaintext}}
  %h = "dist.all_reduce_add_ciphertext"(%p, %group) : (!ckks.plaintext, !dist.group) -> !ckks.plaintext
  // expected-error@+1 {{found a payload !rns.poly<basis = Q[0:2], components = 2, form = evaluation> without moduli, expected `mod %q` of rns.moduli: residues are summed modulo them}}
  %i = dist.all_reduce_add_ciphertext %poly in %group : !poly
  %q = rns.moduli : !rns.moduli<Q[0]>
  // expected-error@+1 {{found moduli of #rns.basis<Q[0]>, expected those of the payload, #rns.basis<Q[0:2]>}}
  %j = dist.all_reduce_add_ciphertext %poly in %group mod %q : !poly, !rns.moduli<Q[0]>
  // expected-error@+1 {{found moduli with a ciphertext payload, expected none: its level names them, and convert-ckks-to-rns adds them}}
  %k = dist.all_reduce_add_ciphertext %ct in %group mod %q : !ct, !rns.moduli<Q[0]>
  func.return
}

// -----

func.func @regions(%x: i32, %group: !dist.group, %key: !ckks.key<conjugation>) {
  // expected-error@+1 {{'dist.all_reduce': found a payload of the resource type !ckks.key<conjugation>, expected data}}
  %a = dist.all_reduce %key in %group : !ckks.key<conjugation> combine {
  ^bb0(%l: !ckks.key<conjugation>, %r: !ckks.key<conjugation>):
    dist.yield %l : !ckks.key<conjugation>
  }
  // expected-error@+1 {{found combine arguments (none), expected two of the payload's type i32}}
  %b = dist.all_reduce %x in %group : i32 combine {
    dist.yield %x : i32
  }
  // expected-error@+1 {{found combine arguments (i32, i64), expected two of the payload's type i32}}
  %c = dist.all_reduce %x in %group : i32 combine {
  ^bb0(%l: i32, %r: i64):
    dist.yield %l : i32
  }
  // expected-error@+1 {{found a combine region that yields nothing, expected one value of i32}}
  %d = dist.all_reduce %x in %group : i32 combine {
  ^bb0(%l: i32, %r: i32):
    dist.yield
  }
  // expected-error@+1 {{found a combine region that yields i32, i32, expected one value of i32}}
  %e = dist.all_reduce %x in %group : i32 combine {
  ^bb0(%l: i32, %r: i32):
    dist.yield %l, %r : i32, i32
  }
  // expected-error@+1 {{attribute i32 expected from variable 'T', but got i64}}
  %f = "dist.all_reduce"(%x, %group) ({
  ^bb0(%l: i32, %r: i32):
    "dist.yield"(%l) : (i32) -> ()
  }) : (i32, !dist.group) -> i64
  func.return
}

// -----

func.func @terminator(%x: i32, %group: !dist.group) {
  // expected-error@+1 {{found func.return at the end of the combine region, expected dist.yield of the combined value}}
  %a = dist.all_reduce %x in %group : i32 combine {
  ^bb0(%l: i32, %r: i32):
    // expected-error@+1 {{func.return}}
    func.return %l : i32
  }
  // expected-error@+2 {{found nothing at the end of the combine region, expected dist.yield of the combined value}}
  // expected-error@+1 {{found an empty block in 'dist.all_reduce', expected it to end with a terminator: add one}}
  %b = dist.all_reduce %x in %group : i32 combine {
  ^bb0(%l: i32, %r: i32):
  }
  func.return
}

// -----

// Every rank runs the region by itself: what it does there may not depend on the others.

func.func private @other(i32) -> i32
func.func @impure(%x: i32, %group: !dist.group, %memory: memref<i32>) {
  // expected-error@+1 {{found dist.broadcast inside the combine region, expected pure ops alone: each rank runs it by itself, as often as it likes, so a collective or a call that may hide one has no place there}}
  %a = dist.all_reduce %x in %group : i32 combine {
  ^bb0(%l: i32, %r: i32):
    %s = dist.broadcast %l from 0 in %group : i32
    dist.yield %s : i32
  }
  // expected-error@+1 {{found func.call inside the combine region, expected pure ops alone}}
  %b = dist.all_reduce %x in %group : i32 combine {
  ^bb0(%l: i32, %r: i32):
    %s = func.call @other(%l) : (i32) -> i32
    dist.yield %s : i32
  }
  // expected-error@+1 {{found memref.store inside the combine region, expected pure ops alone}}
  %c = dist.all_reduce %x in %group : i32 combine {
  ^bb0(%l: i32, %r: i32):
    memref.store %l, %memory[] : memref<i32>
    dist.yield %l : i32
  }
  func.return
}

// -----

func.func @misplaced(%x: i32) {
  // expected-error@+1 {{'dist.yield'}}
  dist.yield %x : i32
}

// -----

func.func @root(%x: i32, %group: !dist.group) {
  // expected-error@+1 {{found 'one', expected integer literal}}
  %a = dist.broadcast %x from one in %group : i32
  func.return
}

// -----

func.func @blocks(%x: i32, %group: !dist.group) {
  // expected-error@+1 {{'dist.all_reduce'}}
  %a = "dist.all_reduce"(%x, %group) ({
  ^bb0(%l: i32, %r: i32):
    cf.br ^bb1
  ^bb1:
    dist.yield %l : i32
  }) : (i32, !dist.group) -> i32
  func.return
}
