// RUN: %opt %s -p canonicalize | filecheck %s --check-prefixes=CHECK,KEPT
// RUN: %opt %s -p cse | filecheck %s --check-prefixes=CHECK,CSE
// RUN: %opt %s -p dce | filecheck %s --check-prefixes=CHECK,DCE

// Names are pure: equal ones merge, unused ones go, different ones stay.

// CHECK-LABEL: func.func @merge
// KEPT-NEXT:   %a = fhelium.material @weights : f64
// KEPT-NEXT:   %b = fhelium.material @weights : f64
// KEPT-NEXT:   %c = fhelium.material @bias : f64
// KEPT-NEXT:   %d = fhelium.material @weights : f32
// KEPT-NEXT:   func.return %a, %b, %c, %d
// CSE-NEXT:    %a = fhelium.material @weights : f64
// CSE-NEXT:    %c = fhelium.material @bias : f64
// CSE-NEXT:    %d = fhelium.material @weights : f32
// CSE-NEXT:    func.return %a, %a, %c, %d
func.func @merge() -> (f64, f64, f64, f32) {
  %a = fhelium.material @weights : f64
  %b = fhelium.material @weights : f64
  %c = fhelium.material @bias : f64
  %d = fhelium.material @weights : f32
  func.return %a, %b, %c, %d : f64, f64, f64, f32
}

// CHECK-LABEL: func.func @unused
// DCE-NEXT:    func.return
// CHECK:       }
func.func @unused() {
  %a = fhelium.material @weights : f64
  %b = fhelium.resource @world : !dist.group
  func.return
}
