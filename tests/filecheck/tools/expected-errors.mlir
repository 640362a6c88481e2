// RUN: %opt %s --verify-diagnostics --split-input-file | filecheck %s

// Comments say which errors must come; then they are no output, and what has none is.

// CHECK-NOT: error
// CHECK:     "test.op"() {valid}
// CHECK-NOT: error:

%0 = "test.op"() : () -> i32
%1 = "arith.addi"(%0, %0) : (i32, i32) -> i64 // expected-error {{i32 expected}}

// -----

%0 = "test.op"() : () -> i32
// expected-error@+1 {{'arith.muli'}}
%1 = "arith.muli"(%0, %0) : (i32, i32) -> i64
%2 = "arith.muli"(%0, %0) : (i32, i32) -> i64
// expected-error@-1 {{'arith.muli'}}
%3 = "arith.muli"(%0, %0) : (i32, i32) -> i64
// expected-error@above {{'arith.muli'}}

// -----

// expected-error@below {{value '%x' is used and not defined}}
// expected-error@below {{value '%y' is used and not defined}}
"test.op"(%x, %y) : (i32, i32) -> ()

// -----

"test.op"() {valid} : () -> ()
