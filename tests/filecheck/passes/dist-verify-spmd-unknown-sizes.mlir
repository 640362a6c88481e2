// RUN: %opt %s -p dist-verify-spmd --verify-diagnostics

// Whether a message has a partner depends on the number of ranks.

func.func @main(%x: f64) {
  %world = fhelium.resource @world : !dist.group
  %r = dist.rank %world
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %r, %zero : index
  scf.if %first {
    // expected-error@+1 {{dist.send has its partner in another rank, found groups of unknown or different sizes, expected one size: say how many ranks there are, as in dist-verify-spmd{ranks=2}}}
    dist.send %x to 1 in %world : f64
  } else {
    %y = dist.recv from 0 in %world : f64
  }
  func.return
}
