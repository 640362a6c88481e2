// RUN: %opt %s --split-input-file --verify-diagnostics

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!poly = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>
!key = !ckks.key<rotation, 1>

func.func @bodies(%x: !ct, %poly: !poly, %key: !key, %group: !dist.group, %c: i1) {
  // expected-error@+1 {{found 0 collectives in dist.start, expected one: start each by itself}}
  %a = dist.start {
    dist.yield %x : !ct
  } : !dist.pending<!ct>
  %a1 = dist.wait %a : !ct
  // expected-error@+1 {{found 2 collectives in dist.start, expected one: start each by itself}}
  %b = dist.start {
    %s = dist.broadcast %x from 0 in %group : !ct
    %t = dist.broadcast %s from 0 in %group : !ct
    dist.yield %t : !ct
  } : !dist.pending<!ct>
  %b1 = dist.wait %b : !ct
  // expected-error@+1 {{found scf.if beside the collective of dist.start, expected pure ops alone}}
  %d = dist.start {
    %s = dist.broadcast %x from 0 in %group : !ct
    scf.if %c {
      dist.barrier in %group
    }
    dist.yield %s : !ct
  } : !dist.pending<!ct>
  %d1 = dist.wait %d : !ct
  // expected-error@+1 {{found dist.yield of !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation> in dist.start, expected !rns.poly<basis = Q[0:2], components = 2, form = evaluation>, what is pending}}
  %e = dist.start {
    %s = dist.broadcast %x from 0 in %group : !ct
    dist.yield %s : !ct
  } : !dist.pending<!poly>
  %e1 = dist.wait %e : !poly
  // expected-error@+1 {{found a pending value of the resource type !ckks.key<rotation, 1>, expected data: keys and groups come from collectives that are not started}}
  %f = dist.start {
    %s = dist.broadcast %key from 0 in %group : !key
    dist.yield %s : !key
  } : !dist.pending<!key>
  %f1 = dist.wait %f : !key
  // expected-error@+1 {{found dist.barrier at the end of dist.start, expected dist.yield of the value of its collective}}
  %g = dist.start {
    // expected-error@+1 {{found 'dist.barrier' at the end of a block of 'dist.start', expected a terminator: add one after it}}
    dist.barrier in %group
  } : !dist.pending<!ct>
  %g1 = dist.wait %g : !ct
  // expected-error@+1 {{found a dist.start that yields nothing, expected the value of its collective, dist.barrier: one without a value is not started}}
  %h = dist.start {
    dist.barrier in %group
    dist.yield
  } : !dist.pending<!ct>
  %h1 = dist.wait %h : !ct
  func.return
}

// -----

func.func @main(%x: i64, %given: !dist.pending<i64>, %group: !dist.group, %c: i1) {
  // expected-error@+1 {{found a pending value that nothing uses, expected one dist.wait: a collective that is started is waited for once}}
  %a = dist.start {
    %s = dist.broadcast %x from 0 in %group : i64
    dist.yield %s : i64
  } : !dist.pending<i64>
  // expected-error@+1 {{found a pending value that dist.wait, dist.wait uses, expected one dist.wait}}
  %b = dist.start {
    %s = dist.broadcast %x from 0 in %group : i64
    dist.yield %s : i64
  } : !dist.pending<i64>
  %b1 = dist.wait %b : i64
  %b2 = dist.wait %b : i64
  // expected-error@+1 {{found a dist.wait in another block, expected it in that of dist.start: each run of a block waits for what it starts}}
  %d = dist.start {
    %s = dist.broadcast %x from 0 in %group : i64
    dist.yield %s : i64
  } : !dist.pending<i64>
  scf.if %c {
    %d1 = dist.wait %d : i64
  }
  // expected-error@+1 {{found fhelium.checkpoint before dist.wait, expected it behind: what is pending cannot be written to a file}}
  %e = dist.start {
    %s = dist.broadcast %x from 0 in %group : i64
    dist.yield %s : i64
  } : !dist.pending<i64>
  fhelium.checkpoint "here"
  %e1 = dist.wait %e : i64
  // expected-error@+1 {{found a pending value that is no result of dist.start, expected one: it is waited for where it was started}}
  %f1 = dist.wait %given : i64
  %g = dist.start {
    %s = dist.broadcast %x from 0 in %group : i64
    dist.yield %s : i64
  } : !dist.pending<i64>
  // expected-error@+1 {{found the results i32, expected i64, what is pending}}
  %g1 = "dist.wait"(%g) : (!dist.pending<i64>) -> i32
  func.return
}

// -----

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!poly = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>

func.func @combined(%x: !ct, %poly: !poly, %group: !dist.group) {
  %q = rns.moduli : !rns.moduli<Q[0]>
  // expected-error@+1 {{found 1 payloads, expected two at least: one alone is dist.all_reduce_add_ciphertext}}
  %a = dist.all_reduce_add_ciphertexts %x in %group : !ct
  // expected-error@+1 {{found ciphertexts beside residue polynomials, expected one kind: lower all of them}}
  %b, %c = dist.all_reduce_add_ciphertexts %x, %poly in %group : !ct, !poly
  // expected-error@+1 {{found the moduli of #rns.basis<Q[0]>, expected those of the payloads, #rns.basis<Q[0:2]>, #rns.basis<Q[0:2]>}}
  %d, %e = dist.all_reduce_add_ciphertexts %poly, %poly in %group mod %q : !poly, !poly mod !rns.moduli<Q[0]>
  // expected-error@+1 {{found the moduli of #rns.basis<Q[0]>, expected those of the payloads, none for ciphertexts}}
  %f, %g = dist.all_reduce_add_ciphertexts %x, %x in %group mod %q : !ct, !ct mod !rns.moduli<Q[0]>
  func.return
}
