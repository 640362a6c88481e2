// RUN: %opt %s -p fhelium-annotate-cost | filecheck %s
// RUN: %opt %s -t cost | filecheck %s --check-prefix=TABLE

// TABLE: 2 ops without samples: their time is left out

// Collectives and transfers cost the bytes of what they take and give, and collectives time; what
// they overlap with is not taken off.

#parameters = #ckks.parameters<
  ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3, scale = 2^6,
  secret = ternary, security = none>

// 2 components of 3 limbs, each of 128 bytes: 768 bytes.
!ct = !ckks.ciphertext<level = 2, scale = 2^6, components = 2, form = evaluation>
!k1 = !ckks.key<rotation, 1>

builtin.module attributes {ckks.parameters = #parameters} {
  // CHECK-LABEL: func.func @reductions
  // CHECK-NOT:     unknown
  func.func @reductions(%x: !ct, %y: !ct) -> (!ct, !ct, !ct) {
    %group = fhelium.resource @world : !dist.group
    // CHECK:       dist.all_reduce_add_ciphertext %x in %group {fhelium.cost = {ntts = 0 : i64, key_switches = 0 : i64, bytes = 1536 : i64, milliseconds = {{[0-9.e+-]+}} : f64}}
    %a = dist.all_reduce_add_ciphertext %x in %group : !ct
    // CHECK-NEXT:  dist.all_reduce_add_ciphertexts %x, %y in %group {fhelium.cost = {{.*}} bytes = 3072 : i64, milliseconds = {{[0-9.e+-]+}} : f64}}
    %b, %c = dist.all_reduce_add_ciphertexts %x, %y in %group : !ct, !ct
    func.return %a, %b, %c : !ct, !ct, !ct
  }

  // A key has 3 digits of 2 components of 4 limbs.
  // CHECK-LABEL: func.func @movement
  // CHECK-SAME:    bytes = {{[0-9]+}} : i64, {{.*}} unknown = 2 : i64
  func.func @movement(%x: !ct) -> (!ct, !ct, !ct) {
    %group = fhelium.resource @world : !dist.group
    %device = fhelium.resource @device : !mem.device
    %k1 = fhelium.resource @rotation_1 : !k1
    // CHECK:       dist.broadcast {{.*}} bytes = 1536 : i64, milliseconds = {{[0-9.e+-]+}} : f64}}
    %a = dist.broadcast %x from 0 in %group : !ct
    // CHECK-NEXT:  dist.broadcast {{.*}} bytes = 6144 : i64, milliseconds = {{[0-9.e+-]+}} : f64}}
    %k = dist.broadcast %k1 from 0 in %group : !k1
    // CHECK-NEXT:  dist.all_gather {{.*}} bytes = 1536 : i64, milliseconds = {{[0-9.e+-]+}} : f64}}
    %b = dist.all_gather %a along 0 in %group : !ct -> !ct
    // CHECK-NEXT:  dist.reduce_scatter {{.*}} bytes = 1536 : i64, milliseconds = {{[0-9.e+-]+}} : f64}}
    %c = dist.reduce_scatter %b along 0 in %group : !ct -> !ct combine {
    ^bb0(%l: !ct, %r: !ct):
      %s = ckks.add %l, %r : !ct
      dist.yield %s : !ct
    }
    // The number of ranks decides how often a region runs on what is gathered.
    // CHECK:       dist.all_reduce {{.*}} bytes = 1536 : i64, milliseconds = 0.000000e+00 : f64, unknown = 1 : i64}
    %d = dist.all_reduce %c in %group : !ct combine {
    ^bb0(%l: !ct, %r: !ct):
      %s = ckks.add_scalar %l, 1.0 : !ct
      dist.yield %s : !ct
    }
    // CHECK:       mem.transfer {{.*}} bytes = 1536 : i64, milliseconds = 0.000000e+00 : f64, unknown = 1 : i64}
    %e = mem.transfer %d to %device : !ct
    func.return %c, %d, %e : !ct, !ct, !ct
  }

  // CHECK-LABEL: func.func @started
  // CHECK-SAME:    bytes = 1536 : i64
  func.func @started(%x: !ct) -> !ct {
    %group = fhelium.resource @world : !dist.group
    // CHECK:       dist.start {
    // CHECK-NEXT:  dist.all_reduce_add_ciphertext {{.*}} bytes = 1536 : i64
    %pending = dist.start {
      %sum = dist.all_reduce_add_ciphertext %x in %group : !ct
      dist.yield %sum : !ct
    } : !dist.pending<!ct>
    %y = dist.wait %pending : !ct
    func.return %y : !ct
  }

  // Of two branches the dearest runs.
  // CHECK-LABEL: func.func @branches
  // CHECK-SAME:    ntts = 46 : i64, key_switches = 2 : i64
  func.func @branches(%x: !ct, %c: i1) -> !ct {
    %k1 = fhelium.resource @rotation_1 : !k1
    %y = scf.if %c -> (!ct) {
      %a = ckks.rotate %x by 1 with %k1 : !ct, !k1
      scf.yield %a : !ct
    } else {
      %a = ckks.rotate %x by 1 with %k1 : !ct, !k1
      %b = ckks.rotate %a by 1 with %k1 : !ct, !k1
      scf.yield %b : !ct
    }
    func.return %y : !ct
  }
}
