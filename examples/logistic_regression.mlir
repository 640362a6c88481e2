// Logistic regression on encrypted data, over several ranks.
//
// Each rank holds some of the feature columns. A column is one ciphertext over the samples, so a
// score is a weighted sum of columns: no rotation is needed. Ranks add their partial scores, and
// a polynomial of degree 3 stands for the sigmoid on [-8, 8] (Kim, Song, Wang, Xia and Jiang,
// 2018, section 3.2):  0.5 + 0.15012 z - 0.001593 z^3.
//
// Scales are exact: a product multiplies them, a rescale at level l divides by the prime of
// level l. Below, s = 2^38 is the default scale and q1, q2, q3 are the primes of levels 1 to 3.

#parameters = #ckks.parameters<
  ring_degree = 8192,
  moduli = [[281474976694273], [274877562881], [274877202433], [274877153281]],
  special = [281474976546817], digits = 4, scale = 2^38, secret = ternary, security = 128>

!column  = !ckks.ciphertext<level = 3, scale = 2^38, components = 2, form = evaluation>
!weight  = !ckks.plaintext<level = 3, scale = 274877153281.0, form = evaluation>          // q3
!product = !ckks.ciphertext<level = 3, scale = 7.555765656060634e22, components = 2, form = evaluation>  // s q3
!score   = !ckks.ciphertext<level = 2, scale = 2^38, components = 2, form = evaluation>
!bias    = !ckks.plaintext<level = 2, scale = 2^38, form = evaluation>

!square3 = !ckks.ciphertext<level = 2, scale = 2^76, components = 3, form = evaluation>
!square2 = !ckks.ciphertext<level = 2, scale = 2^76, components = 2, form = evaluation>
!square  = !ckks.ciphertext<level = 1, scale = 274878611456.80566, components = 2, form = evaluation>    // s^2 / q2
!scaled2 = !ckks.ciphertext<level = 2, scale = 7.5557670071405224e22, components = 2, form = evaluation> // s q2
!scaled  = !ckks.ciphertext<level = 1, scale = 2^38, components = 2, form = evaluation>
!cubic3  = !ckks.ciphertext<level = 1, scale = 7.555805738091976e22, components = 3, form = evaluation>  // s^3 / q2
!cubic2  = !ckks.ciphertext<level = 1, scale = 7.555805738091976e22, components = 2, form = evaluation>
!linear2 = !ckks.ciphertext<level = 2, scale = 7.555795830135e22, components = 2, form = evaluation>     // s^3 / q1
!linear1 = !ckks.ciphertext<level = 1, scale = 274878955521.11816, components = 2, form = evaluation>    // s^3 / (q1 q2)
!result  = !ckks.ciphertext<level = 0, scale = 274878955521.11816, components = 2, form = evaluation>

builtin.module attributes {ckks.parameters = #parameters} {
  func.func @main(%columns: tensor<?x!column>) -> !result {
    %ranks = fhelium.resource @world : !dist.group
    %relinearization = fhelium.resource @relinearization : !ckks.key<relinearization>
    %weights = fhelium.material @weights : tensor<?x!weight>
    %bias = fhelium.material @bias : !bias

    // This rank's part of the score: the weighted sum of its columns.
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %count = tensor.dim %columns, %zero : tensor<?x!column>
    %column0 = tensor.extract %columns[%zero] : tensor<?x!column>
    %weight0 = tensor.extract %weights[%zero] : tensor<?x!weight>
    %product0 = ckks.mul_plain %column0, %weight0 : (!column, !weight) -> !product
    %sum = scf.for %i = %one to %count step %one iter_args(%partial = %product0) -> (!product) {
      %column = tensor.extract %columns[%i] : tensor<?x!column>
      %weight = tensor.extract %weights[%i] : tensor<?x!weight>
      %product = ckks.mul_plain %column, %weight : (!column, !weight) -> !product
      %next = ckks.add %partial, %product : !product
      scf.yield %next : !product
    }
    %part = ckks.rescale %sum : !product -> !score

    // The whole score, the same on every rank.
    %total = dist.all_reduce_add_ciphertext %part in %ranks : !score
    %z = ckks.add_plain %total, %bias : !score, !bias

    // -0.001593 z^3, as z^2 times -0.001593 z.
    %z_squared3 = ckks.mul %z, %z : (!score, !score) -> !square3
    %z_squared2 = ckks.relinearize %z_squared3 with %relinearization : !square3 -> !square2
    %z_squared = ckks.rescale %z_squared2 : !square2 -> !square
    %z_scaled2 = ckks.mul_scalar %z, -0.001593 : !score -> !scaled2
    %z_scaled = ckks.rescale %z_scaled2 : !scaled2 -> !scaled
    %cubic3 = ckks.mul %z_squared, %z_scaled : (!square, !scaled) -> !cubic3
    %cubic2 = ckks.relinearize %cubic3 with %relinearization : !cubic3 -> !cubic2
    %cubic = ckks.rescale %cubic2 : !cubic2 -> !result

    // 0.15012 z, brought to the level and scale of the cubic term.
    %linear2 = ckks.mul_scalar %z, 0.15012 : !score -> !linear2
    %linear1 = ckks.rescale %linear2 : !linear2 -> !linear1
    %linear = ckks.mod_switch %linear1 : !linear1 -> !result

    %odd = ckks.add %cubic, %linear : !result
    %probability = ckks.add_scalar %odd, 0.5 : !result
    func.return %probability : !result
  }
}
