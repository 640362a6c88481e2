// RUN: %opt %s --verify-diagnostics --split-input-file

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^6, secret = ternary, security = none>
!ct2 = !ckks.ciphertext<level = 2, scale = 2^12, components = 2, form = evaluation>
!ct3 = !ckks.ciphertext<level = 2, scale = 2^12, components = 3, form = evaluation>
!coeff3 = !ckks.ciphertext<level = 2, scale = 2^12, components = 3, form = coefficient>
!last3 = !ckks.ciphertext<level = 0, scale = 2^6, components = 3, form = evaluation>
!down = !ckks.ciphertext<level = 1, scale = 15.937743190661479, components = 2, form = evaluation>
!down3 = !ckks.ciphertext<level = 1, scale = 15.937743190661479, components = 3, form = evaluation>
!downc = !ckks.ciphertext<level = 1, scale = 15.937743190661479, components = 2, form = coefficient>
!same = !ckks.ciphertext<level = 2, scale = 15.937743190661479, components = 2, form = evaluation>
!large = !ckks.ciphertext<level = 1, scale = 2^12, components = 2, form = evaluation>
!relin = !ckks.key<relinearization>
!left = !ckks.key<rotation, 1>
builtin.module attributes {ckks.parameters = #p} {
  func.func @main(%x: !ct2, %x3: !ct3, %coeff3: !coeff3, %last3: !last3, %relin: !relin, %left: !left) {
    // expected-error@+1 {{found operand components 2, expected 3: only a product of two is relinearized}}
    %a = ckks.relinearize_rescale %x with %relin : !ct2 -> !down
    // expected-error@+1 {{found result components 3, expected 2: that is what relinearizing is for}}
    %b = ckks.relinearize_rescale %x3 with %relin : !ct3 -> !down3
    // expected-error@+1 {{found input in coefficient form, expected evaluation form: ckks.relinearize_rescale multiplies}}
    %c = ckks.relinearize_rescale %coeff3 with %relin : !coeff3 -> !down
    // expected-error@+1 {{found result in coefficient form}}
    %d = ckks.relinearize_rescale %x3 with %relin : !ct3 -> !downc
    // expected-error@+1 {{found result level 2, expected 1: a rescale drops one level}}
    %e = ckks.relinearize_rescale %x3 with %relin : !ct3 -> !same
    // expected-error@+1 {{a rescale at level 2 divides the scale by 257}}
    %f = ckks.relinearize_rescale %x3 with %relin : !ct3 -> !large
    // expected-error@+1 {{found level 0, expected at least 1: no prime is left to drop}}
    %g = ckks.relinearize_rescale %last3 with %relin : !last3 -> !down
    // expected-error@+1 {{Expected attribute !ckks.key<relinearization> but got !ckks.key<rotation, 1>}}
    %h = "ckks.relinearize_rescale"(%x3, %left) : (!ct3, !left) -> !down
    func.return
  }
}
