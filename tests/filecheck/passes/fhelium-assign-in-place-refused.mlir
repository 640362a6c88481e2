// RUN: %opt %s -p fhelium-assign-in-place --verify-diagnostics --split-input-file

!p = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>

func.func @main(%x: !p) -> !p {
  // expected-error@+1 {{pass fhelium-assign-in-place: found fhelium.in_place = true, expected a unit attribute: write it without a value, or drop it}}
  %a = rns.negate %x {fhelium.in_place = true} : !p
  func.return %a : !p
}

// -----

!p = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>

func.func @main(%x: !p) -> !p {
  // expected-error@+1 {{pass fhelium-assign-in-place: found fhelium.implementation = "", expected a non-empty string: name one of the implementations of rns.negate, or drop the attribute}}
  %a = rns.negate %x {fhelium.implementation = ""} : !p
  func.return %a : !p
}
