// RUN: %opt %s -p cse | filecheck %s --check-prefix=CSE
// RUN: %opt %s -p dce | filecheck %s --check-prefix=DCE

// All ops are pure: equal ones merge, and unused ones go.

!ct = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 1, scale = 2^12, components = 3, form = evaluation>
!ct2 = !ckks.ciphertext<level = 1, scale = 2^12, components = 2, form = evaluation>
!low = !ckks.ciphertext<level = 0, scale = 2^6, components = 2, form = evaluation>
!coeff = !ckks.ciphertext<level = 1, scale = 2^6, components = 2, form = coefficient>
!pt = !ckks.plaintext<level = 1, scale = 2^6, form = evaluation>
!relin = !ckks.key<relinearization>
!rot = !ckks.key<rotation, 1>
!conj = !ckks.key<conjugation>

// CSE-LABEL: func.func @equal
// CSE-NEXT:  %a = ckks.mul %x, %y
// CSE-NEXT:  %c = ckks.relinearize %a
// CSE-NEXT:  %e = ckks.rotate %x by 1
// CSE-NEXT:  func.return %a, %a, %c, %c, %e, %e
func.func @equal(%x: !ct, %y: !ct, %relin: !relin, %rot: !rot) -> (!ct3, !ct3, !ct2, !ct2, !ct, !ct) {
  %a = ckks.mul %x, %y : (!ct, !ct) -> !ct3
  %b = ckks.mul %x, %y : (!ct, !ct) -> !ct3
  %c = ckks.relinearize %a with %relin : !ct3 -> !ct2
  %d = ckks.relinearize %b with %relin : !ct3 -> !ct2
  %e = ckks.rotate %x by 1 with %rot : !ct, !rot
  %f = ckks.rotate %x by 1 with %rot : !ct, !rot
  func.return %a, %b, %c, %d, %e, %f : !ct3, !ct3, !ct2, !ct2, !ct, !ct
}

// Other values, attributes, results or implementations make another op.
// CSE-LABEL: func.func @unequal
// CSE-NEXT:  ckks.add_scalar %x, 1.000000e+00
// CSE-NEXT:  ckks.add_scalar %x, 2.000000e+00
// CSE-NEXT:  ckks.mul_scalar
// CSE-NEXT:  ckks.mul_scalar
// CSE-NEXT:  ckks.sub %x, %y
// CSE-NEXT:  ckks.sub %y, %x
// CSE-NEXT:  ckks.add %x, %y
// CSE-NEXT:  ckks.add %x, %y {fhelium.implementation = "mine"}
// CSE-NEXT:  func.return
func.func @unequal(%x: !ct, %y: !ct) -> (!ct, !ct, !ct, !ct2, !ct, !ct, !ct, !ct) {
  %a = ckks.add_scalar %x, 1.0 : !ct
  %b = ckks.add_scalar %x, 2.0 : !ct
  %c = ckks.mul_scalar %x, 2.0 : !ct -> !ct
  %d = ckks.mul_scalar %x, 2.0 : !ct -> !ct2
  %e = ckks.sub %x, %y : !ct
  %f = ckks.sub %y, %x : !ct
  %g = ckks.add %x, %y : !ct
  %h = ckks.add %x, %y {fhelium.implementation = "mine"} : !ct
  func.return %a, %b, %c, %d, %e, %f, %g, %h : !ct, !ct, !ct, !ct2, !ct, !ct, !ct, !ct
}

// DCE-LABEL: func.func @unused
// DCE-NEXT:  func.return
func.func @unused(%x: !ct, %p: !pt, %c: !coeff, %x3: !ct3, %relin: !relin, %rot: !rot, %conj: !conj) {
  %0 = ckks.add %x, %x : !ct
  %1 = ckks.sub %x, %x : !ct
  %2 = ckks.negate %x : !ct
  %3 = ckks.add_plain %x, %p : !ct, !pt
  %4 = ckks.sub_plain %x, %p : !ct, !pt
  %5 = ckks.mul %x, %x : (!ct, !ct) -> !ct3
  %6 = ckks.square %x : !ct -> !ct3
  %7 = ckks.mul_plain %x, %p : (!ct, !pt) -> !ct2
  %8 = ckks.weighted_sum %x by %p : (!ct, !pt) -> !ct2
  %9 = ckks.add_scalar %x, 1.0 : !ct
  %10 = ckks.mul_scalar %x, 1.0 : !ct -> !ct
  %11 = ckks.mul_integer %x, 2 : !ct
  %12 = ckks.relinearize %x3 with %relin : !ct3 -> !ct2
  %13 = ckks.rescale %x3 : !ct3 -> !ckks.ciphertext
  %14 = ckks.mod_switch %x : !ct -> !low
  %15 = ckks.rotate %x by 1 with %rot : !ct, !rot
  %16 = ckks.rotate_many %x by [1] with %rot : (!ct, !rot) -> !ct
  %17 = ckks.conjugate %x with %conj : !ct
  %18 = ckks.to_coefficient %x : !ct -> !coeff
  %19 = ckks.to_evaluation %c : !coeff -> !ct
  func.return
}
