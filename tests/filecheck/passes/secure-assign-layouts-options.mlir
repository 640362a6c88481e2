// RUN: %opt %s --verify-diagnostics -p secure-assign-layouts{slots=3000}

// expected-error@+1 {{pass secure-assign-layouts: found slots=3000, expected a power of two}}
builtin.module {
  func.func @main(%x: !secure.tensor<4>) {
    func.return
  }
}
