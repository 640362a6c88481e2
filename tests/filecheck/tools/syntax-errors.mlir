// RUN: %diagnose

// CHECK:      {{.*}}syntax-errors.mlir:6:6: error: found operation 'arith.constnt', which is not registered: did you mean 'arith.constant'?
// CHECK-NEXT: %0 = arith.constnt 1 : i32
// CHECK-NEXT:      ^^^^^^^^^^^^^
%0 = arith.constnt 1 : i32

// -----

// CHECK:      {{.*}}syntax-errors.mlir:13:6: error: found operation 'arit.addi' of the unknown dialect 'arit': did you mean 'arith'?
// CHECK-NEXT: %0 = arit.addi 1 : i32
// CHECK-NEXT:      ^^^^^^^^^
%0 = arit.addi 1 : i32

// -----

// CHECK:      {{.*}}syntax-errors.mlir:20:26: error: found type '!ckks.cipherext', which is not registered: did you mean '!ckks.ciphertext'?
// CHECK-NEXT: %0 = "test.op"() : () -> !ckks.cipherext
// CHECK-NEXT:                          ^^^^^^^^^^^^^^^
%0 = "test.op"() : () -> !ckks.cipherext

// -----

// CHECK:      {{.*}}syntax-errors.mlir:27:18: error: found attribute '#ckks.paramters', which is not registered: did you mean '#ckks.parameters'?
// CHECK-NEXT: "test.op"() {p = #ckks.paramters} : () -> ()
// CHECK-NEXT:                  ^^^^^^^^^^^^^^^
"test.op"() {p = #ckks.paramters} : () -> ()

// -----

!cipher = i32
// CHECK:      {{.*}}syntax-errors.mlir:35:26: error: alias '!ciper' is used and not defined: did you mean '!cipher'?
// CHECK-NEXT: %0 = "test.op"() : () -> !ciper
// CHECK-NEXT:                          ^^^^^^
%0 = "test.op"() : () -> !ciper

// -----

// The word that was found and the one that was expected.

// CHECK:      {{.*}}syntax-errors.mlir:44:18: error: found '->', expected ':' and function type signature
// CHECK-NEXT: %0 = "test.op"() -> i32
// CHECK-NEXT:                  ^^
%0 = "test.op"() -> i32

// -----

// CHECK:      {{.*}}syntax-errors.mlir:51:1: error: found '->', expected an operation or an alias definition
// CHECK-NEXT: -> i32
// CHECK-NEXT: ^^
-> i32

// -----

// CHECK:      {{.*}}syntax-errors.mlir:59:3: error: found ')', expected an operation, a block label or '}'
// CHECK-NEXT:   )
// CHECK-NEXT:   ^
func.func @f() {
  )
}

// -----

// A verifier of a type or attribute speaks at its text.

// CHECK:      {{.*}}syntax-errors.mlir:67:51: error: found level -1, expected at least 0
%0 = "test.op"() : () -> !ckks.ciphertext<level = -1>

// -----

// CHECK:      {{.*}}syntax-errors.mlir:74:18: error: Integer value 300 is out of range for type i8
// CHECK-NEXT: "test.op"() {a = 300 : i8} : () -> ()
// CHECK-NEXT:                  ^^^^^^^^
"test.op"() {a = 300 : i8} : () -> ()

// -----

// CHECK:      {{.*}}syntax-errors.mlir:81:18: error: found a string that does not end on its line, expected a closing "
// CHECK-NEXT: "test.op"() {a = "abcdefghijklmnopqrstuvwxyz} : () -> ()
// CHECK-NEXT:                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"test.op"() {a = "abcdefghijklmnopqrstuvwxyz} : () -> ()

// -----

// All values that are used and not defined, each where it is used first.

%total = "test.op"() : () -> i32
// CHECK:      {{.*}}syntax-errors.mlir:94:11: error: value '%x' is used and not defined{{$}}
// CHECK-NEXT: "test.op"(%x, %totl) : (i32, i32) -> ()
// CHECK-NEXT:           ^^
// CHECK-NEXT: {{.*}}syntax-errors.mlir:94:15: error: value '%totl' is used and not defined: did you mean '%total'?
// CHECK-NEXT: "test.op"(%x, %totl) : (i32, i32) -> ()
// CHECK-NEXT:               ^^^^^
"test.op"(%x, %totl) : (i32, i32) -> ()

// -----

// CHECK:      {{.*}}syntax-errors.mlir:107:11: error: value '%inner' is used and not defined
// CHECK-NEXT: "test.op"(%inner) : (i32) -> ()
// CHECK-NEXT:           ^^^^^^
// CHECK-NEXT: {{.*}}syntax-errors.mlir:105:3: note: a definition inside a region is not visible outside of it
// CHECK-NEXT:   %inner = "test.op"() : () -> i32
// CHECK-NEXT:   ^^^^^^
"test.op"() ({
  %inner = "test.op"() : () -> i32
}) : () -> ()
"test.op"(%inner) : (i32) -> ()

// -----

// CHECK:      {{.*}}syntax-errors.mlir:118:1: error: value '%a' is already defined: rename one of the two
// CHECK-NEXT: %a = "test.op"() : () -> i64
// CHECK-NEXT: ^^
// CHECK-NEXT: {{.*}}syntax-errors.mlir:117:1: note: the first definition
// CHECK-NEXT: %a = "test.op"() : () -> i32
// CHECK-NEXT: ^^
%a = "test.op"() : () -> i32
%a = "test.op"() : () -> i64

// -----

// CHECK:      {{.*}}syntax-errors.mlir:125:13: error: found the end of the text, expected
// CHECK-NEXT: "test.op"() (
// CHECK-NEXT:             ^
"test.op"() (
