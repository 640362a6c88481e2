!ct = !ckks.ciphertext<level = 1, scale = 2^40, components = 2, form = evaluation>

func.func @main(%x: !ct) -> !ct {
  %world = fhelium.resource @world : !dist.group
  %sum = dist.all_reduce_add_ciphertext %x in %world : !ct
  func.return %sum : !ct
}
