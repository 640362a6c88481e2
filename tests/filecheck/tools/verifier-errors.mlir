// RUN: %diagnose

// All errors of a module come, each at its op, and nothing but them.


func.func @all(%a: i32) -> i32 {
  // CHECK:      {{.*}}verifier-errors.mlir:10:8: error: 'arith.addi': {{.*}}i32{{.*}}i64
  // CHECK-NEXT: %b = "arith.addi"(%a, %a) : (i32, i32) -> i64
  // CHECK-NEXT:      ^^^^^^^^^^^^
  %b = "arith.addi"(%a, %a) : (i32, i32) -> i64
  // CHECK:      {{.*}}verifier-errors.mlir:14:8: error: 'arith.muli': {{.*}}i32{{.*}}i64
  // CHECK-NEXT: %c = "arith.muli"(%a, %a) : (i32, i32) -> i64
  // CHECK-NEXT:      ^^^^^^^^^^^^
  %c = "arith.muli"(%a, %a) : (i32, i32) -> i64
  func.return %a : i32
}

// -----

func.func @order() {
  // CHECK:      {{.*}}verifier-errors.mlir:27:3: error: operand 0 (%late) of 'test.op' is used before its definition: move the definition up
  // CHECK-NEXT:   "test.op"(%late) : (i32) -> ()
  // CHECK-NEXT:   ^^^^^^^^^
  // CHECK-NEXT: {{.*}}verifier-errors.mlir:28:11: note: it is defined here
  // CHECK-NEXT:   %late = "test.op"() : () -> i32
  // CHECK-NEXT:           ^^^^^^^^^
  "test.op"(%late) : (i32) -> ()
  %late = "test.op"() : () -> i32
  func.return
}

// -----

%outer = "test.op"() : () -> i32
func.func @isolated() {
  // CHECK:      {{.*}}verifier-errors.mlir:37:3: error: operand 0 (%outer) of 'test.op' is defined outside of 'func.func', which sees nothing of its surroundings: pass the value in as an argument
  "test.op"(%outer) : (i32) -> ()
  func.return
}

// -----

// xDSL's parser takes this for a use of the later value.
func.func @first() {
  // CHECK:      {{.*}}verifier-errors.mlir:46:3: error: operand 0 (%v) of 'test.op' is defined in a region that does not enclose this use: move the definition out
  "test.op"(%v) : (i32) -> ()
  func.return
}
func.func @second() {
  %v = "test.op"() : () -> i32
  func.return
}

// -----

func.func @dominance(%condition: i1) {
  cf.cond_br %condition, ^then, ^join
^then:
  %w = "test.op"() : () -> i32
  cf.br ^join
^join:
  // CHECK:      {{.*}}verifier-errors.mlir:63:3: error: operand 0 (%w) of 'test.op' is defined in a block that does not dominate this use
  "test.op"(%w) : (i32) -> ()
  func.return
}

// -----

// CHECK:      {{.*}}verifier-errors.mlir:71:3: error: found 'test.op' at the end of a block of 'func.func', expected a terminator: add one after it
func.func @unterminated() {
  "test.op"() : () -> ()
}

// -----

// CHECK:      {{.*}}verifier-errors.mlir:77:1: error: found an empty block in 'func.func', expected it to end with a terminator: add one
func.func @empty() {
^bb0:
}

// -----

func.func @branch() {
  // CHECK:      {{.*}}verifier-errors.mlir:85:3: error: 'cf.br' must be the last operation in its parent block
  cf.br ^next
  "test.op"() : () -> ()
  func.return
^next:
  func.return
}

// -----

// The body of a module is a graph region: order does not matter.
// CHECK: "test.op"(%x) {fine}
"test.op"(%x) {fine} : (i32) -> ()
%x = "test.op"() : () -> i32
