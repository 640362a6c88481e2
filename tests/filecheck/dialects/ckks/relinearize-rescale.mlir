// RUN: %roundtrip
// RUN: %generic-roundtrip
// RUN: %opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: %opt %s -p cse | filecheck %s --check-prefix=CSE

#p = #ckks.parameters<ring_degree = 16, moduli = [[97], [193], [257]], special = [353], digits = 3,
                      scale = 2^6, secret = ternary, security = none>
!ct3 = !ckks.ciphertext<level = 2, scale = 2^12, components = 3, form = evaluation>
!down = !ckks.ciphertext<level = 1, scale = 15.937743190661479, components = 2, form = evaluation>

builtin.module attributes {ckks.parameters = #p} {
  // CSE-LABEL:     func.func @main
  func.func @main(%x3: !ct3) -> (!down, !down) {
    %key = fhelium.resource @relinearization : !ckks.key<relinearization>
    // CHECK:       %a = ckks.relinearize_rescale %x3 with %key : !ct3_L2_s12 -> !ct_L1_s{{[0-9_]+}}
    // GENERIC:     %a = "ckks.relinearize_rescale"(%x3, %key) : (!ct3_L2_s12, !ckks.key<relinearization>) -> !ct_L1_s{{[0-9_]+}}
    %a = ckks.relinearize_rescale %x3 with %key : !ct3 -> !down
    // CSE:         ckks.relinearize_rescale
    // CSE-NEXT:    func.return %a, %a
    %b = ckks.relinearize_rescale %x3 with %key : !ct3 -> !down
    func.return %a, %b : !down, !down
  }
}
