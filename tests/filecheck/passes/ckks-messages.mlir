// RUN: %opt %s -p ckks-default | filecheck %s
// RUN: %opt %s -p ckks-lazy | filecheck %s

// A level that the text says of what is received is that of what is sent; it stays on a result.
// CHECK-LABEL: func.func @level(%x: !ct_L3_s{{[0-9]+}}, %y: !ct_L3_s{{[0-9]+}}) -> (!ct_L2_s{{[0-9]+}}, !ct_L0_s{{[0-9]+}}) {
// CHECK:         dist.send %{{.*}} to 1 in %w tag 3 : !ct_L2_s
// CHECK-NEXT:    %r = dist.recv from 0 in %w tag 3 : !ct_L2_s
// CHECK-NEXT:    %q = ckks.negate %r : !ct_L2_s
!ct = !ckks.ciphertext
!pt = !ckks.plaintext
!given = !ckks.ciphertext<level = 2>
func.func @level(%x: !ct, %y: !ct) -> (!given, !ct) {
  %w = fhelium.resource @world : !dist.group
  %xy = ckks.mul %x, %y : (!ct, !ct) -> !ct
  dist.send %xy to 1 in %w tag 3 : !ct
  %r = dist.recv from 0 in %w tag 3 : !given
  %q = ckks.negate %r : !given
  %z = ckks.mul_scalar %q, 0.5 : !given -> !ct
  func.return %q, %z : !given, !ct
}

// Forms, plaintexts with the tag of ciphertexts, and what is decrypted, pending or written in full.
// CHECK-LABEL: func.func @forms(
// CHECK:         dist.send %xc to 1 in %w tag 3 : !ct_L1_s{{[0-9]+}}_coeff
// CHECK-NEXT:    %r = dist.recv from 0 in %w tag 3 : !ct_L1_s{{[0-9]+}}_coeff
// CHECK:         %d = ckks.decrypt %{{.*}} with %s : !ct_L0_s{{[0-9]+}} -> !pt_L0_s
// CHECK-NEXT:    %dd = dist.gather %d to 0 along 0 in %w : !pt_L0_s{{[0-9]+}} -> !pt_L0_s
// CHECK:           %b = dist.broadcast %p from 0 in %w : !pt_L0_s
// CHECK:         dist.send %p to 1 in %w tag 3 : !pt_L0_s
// CHECK:         %pr = dist.recv from 0 in %w tag 3 : !pt_L0_s
// CHECK-NEXT:    %other = dist.recv from 0 in %w tag 9 : !pt_L2_s40
!coefficients = !ckks.ciphertext<form = coefficient>
!full = !ckks.plaintext<level = 2, scale = 2^40, form = evaluation>
func.func @forms(%x: !ct, %v: tensor<4xf64>, %s: !ckks.client_key<secret>,
                 %k: !ckks.client_key<public>) -> (!coefficients, !ct, !pt, !ct) {
  %w = fhelium.resource @world : !dist.group
  %xc = ckks.to_coefficient %x : !ct -> !coefficients
  dist.send %xc to 1 in %w tag 3 : !coefficients
  %r = dist.recv from 0 in %w tag 3 : !coefficients
  %e = ckks.to_evaluation %r : !coefficients -> !ct
  %z = ckks.mul_scalar %e, 0.5 : !ct -> !ct
  %d = ckks.decrypt %z with %s : !ct -> !pt
  %dd = dist.gather %d to 0 along 0 in %w : !pt -> !pt
  %p = ckks.encode %v : tensor<4xf64> -> !pt
  %pending = dist.start {
    %b = dist.broadcast %p from 0 in %w : !pt
    dist.yield %b : !pt
  } : !dist.pending<!pt>
  dist.send %p to 1 in %w tag 3 : !pt
  %b2 = dist.wait %pending : !pt
  %pr = dist.recv from 0 in %w tag 3 : !pt
  %other = dist.recv from 0 in %w tag 9 : !full
  %enc = ckks.encrypt %b2 with %k : !pt, !ckks.client_key<public> -> !ct
  %yy = ckks.add_plain %x, %pr : !ct, !pt
  func.return %r, %enc, %dd, %yy : !coefficients, !ct, !pt, !ct
}
