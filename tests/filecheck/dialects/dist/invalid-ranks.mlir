// RUN: %opt %s --split-input-file --verify-diagnostics

func.func @roots_and_peers(%x: tensor<4xi64>, %group: !dist.group) {
  // expected-error@+1 {{'dist.gather': found root -1, expected a rank of the group, from 0 upwards}}
  %a = dist.gather %x to -1 along 0 in %group : tensor<4xi64> -> tensor<?xi64>
  // expected-error@+1 {{'dist.scatter': found root -2, expected a rank of the group, from 0 upwards}}
  %b = dist.scatter %x from -2 along 0 in %group : tensor<4xi64> -> tensor<?xi64>
  // expected-error@+1 {{'dist.reduce': found root -1, expected a rank of the group, from 0 upwards}}
  %c = dist.reduce %x to -1 in %group : tensor<4xi64> combine {
  ^bb0(%l: tensor<4xi64>, %r: tensor<4xi64>):
    dist.yield %l : tensor<4xi64>
  }
  // expected-error@+1 {{'dist.send': found peer -1, expected a rank of the group, from 0 upwards}}
  dist.send %x to -1 in %group : tensor<4xi64>
  // expected-error@+1 {{'dist.recv': found peer -3, expected a rank of the group, from 0 upwards}}
  %d = dist.recv from -3 in %group : tensor<4xi64>
  // expected-error@+1 {{'dist.send': found tag -1, expected 0 to 2147483647}}
  dist.send %x to 1 in %group tag -1 : tensor<4xi64>
  // expected-error@+1 {{'dist.recv': found tag 2147483648, expected 0 to 2147483647}}
  %e = dist.recv from 1 in %group tag 2147483648 : tensor<4xi64>
  func.return
}

// Keys of the client are never sent; switching keys travel whole.
func.func @keys(%secret: !ckks.client_key<secret>, %public: !ckks.client_key<public>, %key: !ckks.key<conjugation>, %group: !dist.group) {
  // expected-error@+1 {{'dist.send': found a payload of the resource type !ckks.client_key<secret>, expected data: bind the resource on every rank instead of sending it}}
  dist.send %secret to 1 in %group : !ckks.client_key<secret>
  // expected-error@+1 {{'dist.recv': found a payload of the resource type !ckks.client_key<public>, expected data}}
  %a = dist.recv from 1 in %group : !ckks.client_key<public>
  // expected-error@+1 {{'dist.recv': found a payload of the resource type !dist.group, expected data}}
  %b = dist.recv from 1 in %group : !dist.group
  // expected-error@+1 {{'dist.all_gather': found a payload of the resource type !ckks.key<conjugation>, expected data}}
  %c = dist.all_gather %key along 0 in %group : !ckks.key<conjugation> -> !ckks.key<conjugation>
  // expected-error@+1 {{'dist.reduce_scatter': found a payload of the resource type !ckks.key<conjugation>, expected data}}
  %d = dist.reduce_scatter %key along 0 in %group : !ckks.key<conjugation> -> !ckks.key<conjugation> combine {
  ^bb0(%l: !ckks.key<conjugation>, %r: !ckks.key<conjugation>):
    dist.yield %l : !ckks.key<conjugation>
  }
  func.return
}

// -----

func.func @operands(%x: tensor<4xi64>, %i: i32, %group: !dist.group, %device: !mem.device) {
  // expected-error@+1 {{'dist.barrier': operand 'group' at position 0 does not verify: Expected attribute !dist.group but got !mem.device}}
  "dist.barrier"(%device) : (!mem.device) -> ()
  // expected-error@+1 {{'dist.split': operand 'color' at position 1 does not verify: Expected attribute index but got i32}}
  %a = "dist.split"(%group, %i, %i) : (!dist.group, i32, i32) -> !dist.group
  // expected-error@+1 {{property 'peer' expected in operation 'dist.send'}}
  "dist.send"(%x, %group) : (tensor<4xi64>, !dist.group) -> ()
  // expected-error@+1 {{attribute tensor<4xi64> expected from variable 'T', but got tensor<2xi64>}}
  %b = "dist.reduce"(%x, %group) <{root = 0 : i64}> ({
  ^bb0(%l: tensor<2xi64>, %r: tensor<2xi64>):
    "dist.yield"(%l) : (tensor<2xi64>) -> ()
  }) : (tensor<4xi64>, !dist.group) -> tensor<2xi64>
  func.return
}

// -----

// The region of a reduction to shares combines shares; the others combine payloads.
func.func @regions(%x: tensor<4xi64>, %group: !dist.group) {
  // expected-error@+1 {{'dist.reduce_scatter': found combine arguments (tensor<4xi64>, tensor<4xi64>), expected two of the result's type tensor<2xi64>}}
  %a = dist.reduce_scatter %x along 0 in %group : tensor<4xi64> -> tensor<2xi64> combine {
  ^bb0(%l: tensor<4xi64>, %r: tensor<4xi64>):
    dist.yield %l : tensor<4xi64>
  }
  // expected-error@+1 {{'dist.reduce': found combine arguments (tensor<2xi64>, tensor<2xi64>), expected two of the payload's type tensor<4xi64>}}
  %b = dist.reduce %x to 0 in %group : tensor<4xi64> combine {
  ^bb0(%l: tensor<2xi64>, %r: tensor<2xi64>):
    dist.yield %l : tensor<2xi64>
  }
  // expected-error@+1 {{found dist.barrier inside the combine region, expected pure ops alone}}
  %c = dist.reduce %x to 0 in %group : tensor<4xi64> combine {
  ^bb0(%l: tensor<4xi64>, %r: tensor<4xi64>):
    dist.barrier in %group
    dist.yield %l : tensor<4xi64>
  }
  func.return
}
