// RUN: %opt %s -p 'fhelium-assign-implementations{target=cpu}' | filecheck %s --check-prefix=KEPT
// RUN: %opt %s -p 'fhelium-assign-implementations{target=cpu only="rns.negate"}' | filecheck %s --check-prefix=KEPT
// RUN: %opt %s -p 'fhelium-assign-implementations{target=cpu overwrite=true}' | filecheck %s --check-prefix=FAMILY
// RUN: %opt %s -p 'fhelium-assign-implementations{op="rns.negate" implementation="mine" overwrite=true}' | filecheck %s --check-prefix=MINE
// RUN: %opt %s -p 'cpu-default' | filecheck %s --check-prefix=DEFAULT

// A family leaves alone what records an implementation of no family, unless it is to overwrite that.

// What overwrites a record drops `fhelium.in_place`, unless it is known to run in place.

!p = !rns.poly<basis = Q[0:2], components = 2, form = evaluation>

// KEPT:         rns.negate %x {fhelium.implementation = "cpu-rns-negate"}
// KEPT-NEXT:    rns.negate %a {fhelium.in_place, fhelium.implementation = "theirs"}
// KEPT-NEXT:    rns.negate %b {fhelium.in_place, fhelium.implementation = "cpu-rns-negate"}

// FAMILY:       rns.negate %x {fhelium.implementation = "cpu-rns-negate"}
// FAMILY-NEXT:  rns.negate %a {fhelium.in_place, fhelium.implementation = "cpu-rns-negate"}
// FAMILY-NEXT:  rns.negate %b {fhelium.in_place, fhelium.implementation = "cpu-rns-negate"}

// MINE:         rns.negate %x {fhelium.implementation = "mine"}
// MINE-NEXT:    rns.negate %a {fhelium.implementation = "mine"}
// MINE-NEXT:    rns.negate %b {fhelium.implementation = "mine"}

// DEFAULT:      rns.negate %{{.*}} {fhelium.in_place, fhelium.implementation = "theirs"}
func.func @main(%x: !p) -> !p {
  %a = rns.negate %x : !p
  %b = rns.negate %a {fhelium.in_place, fhelium.implementation = "theirs"} : !p
  %c = rns.negate %b {fhelium.in_place, fhelium.implementation = "cpu-rns-negate"} : !p
  func.return %c : !p
}
