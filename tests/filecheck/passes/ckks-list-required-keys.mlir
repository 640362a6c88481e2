// RUN: %opt %s --split-input-file -p ckks-list-required-keys | filecheck %s
// RUN: %opt %s --split-input-file -p ckks-list-required-keys,ckks-list-required-keys | %opt --split-input-file | filecheck %s

// Keys are listed by symbol, once however often they are named; one that no op uses is left out.
// CHECK:      builtin.module attributes {ckks.required_keys = {
// CHECK-SAME:   a = !ckks.key<conjugation>, left = !ckks.key<rotation, 1>,
// CHECK-SAME:   relinearization = !ckks.key<relinearization>, right = !ckks.key<rotation, -3>}} {
// CHECK-NEXT:   func.func @main
func.func @main() {
  %right = fhelium.resource @right : !ckks.key<rotation, -3>
  %left = fhelium.resource @left : !ckks.key<rotation, 1>
  %again = fhelium.resource @left : !ckks.key<rotation, 1>
  %spare = fhelium.resource @spare : !ckks.key<rotation, 7>
  %group = fhelium.resource @world : !dist.group
  "test.op"(%right, %left, %again, %group) : (!ckks.key<rotation, -3>, !ckks.key<rotation, 1>, !ckks.key<rotation, 1>, !dist.group) -> ()
  func.return
}
func.func @other(%condition: i1) {
  %relinearization = fhelium.resource @relinearization : !ckks.key<relinearization>
  scf.if %condition {
    %conjugation = fhelium.resource @a : !ckks.key<conjugation>
    "test.op"(%conjugation, %relinearization) : (!ckks.key<conjugation>, !ckks.key<relinearization>) -> ()
  }
  func.return
}

// -----

// An unused key may have any type: it is not needed.
// CHECK: builtin.module attributes {ckks.required_keys = {k = !ckks.key<conjugation>}} {
%unused = fhelium.resource @k : !ckks.key<relinearization>
%used = fhelium.resource @k : !ckks.key<conjugation>
"test.op"(%used) : (!ckks.key<conjugation>) -> ()

// -----

// No keys: the list says so, and replaces an old one.
// CHECK: builtin.module attributes {ckks.required_keys = {}, other = 1 : i32} {
builtin.module attributes {ckks.required_keys = {old = !ckks.key<conjugation>}, other = 1 : i32} {
  "test.op"() : () -> ()
}
