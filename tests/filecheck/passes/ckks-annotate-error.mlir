// RUN: %opt %s --split-input-file -p ckks-annotate-error

#parameters = #ckks.parameters<
  ring_degree = 1024, moduli = [[1125899906826241], [1099511592961], [1099511678977]],
  special = [1125899906820097], digits = 3, scale = 2^40, secret = ternary, security = none>
!ct = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 2, scale = 2^80, components = 3, form = evaluation>
!ct2 = !ckks.ciphertext<level = 2, scale = 2^80, components = 2, form = evaluation>
!coeff = !ckks.ciphertext<level = 2, scale = 2^40, components = 2, form = coefficient>
!low = !ckks.ciphertext<level = 0, scale = 2^40, components = 2, form = evaluation>
!down = !ckks.ciphertext<level = 1, scale = 1099511578624.0, components = 2, form = evaluation>
!down3 = !ckks.ciphertext<level = 1, scale = 1099511578624.0, components = 3, form = evaluation>
!pt = !ckks.plaintext<level = 2, scale = 2^40, form = evaluation>

builtin.module attributes {ckks.parameters = #parameters} {
  func.func @arithmetic(%x: !ct, %y: !ct, %p: !pt, %q: !pt) {
    %negate = ckks.negate %x : !ct
    %add = ckks.add %x, %y : !ct
    func.return
  }
}
