"""What to use for common operators that have no rule."""

from collections.abc import Mapping

_EVAL = "the model is in training mode, so call model.eval() first"
_MATRIX = "multiply by a constant matrix of zeros and ones that picks the elements"
_POLYNOMIAL = "use a polynomial, x ** k and products by constants, on the interval that you expect"

_NAMES: Mapping[str, str] = {
    # Training mode.
    "use batch norm with running statistics, and call model.eval()": "_native_batch_norm_legit",
    f"{_EVAL}, and batch norm has constants": "_native_batch_norm_legit_functional",
    _EVAL: "native_dropout dropout alpha_dropout feature_dropout feature_alpha_dropout "
    "rrelu_with_noise rrelu_with_noise_functional",
    # Functions.
    "use x * x, or nn.ReLU with an approximation": "abs",
    "keep values in range by scaling them, or use nn.Tanh": "clamp clamp_min clamp_max clip",
    "use nn.SiLU, nn.GELU or nn.ReLU": "celu elu hardshrink leaky_relu log_sigmoid mish prelu "
    "rrelu selu softplus softshrink threshold",
    "use nn.ReLU": "relu6",
    "use nn.Sigmoid": "hardsigmoid special_expit",
    "use nn.SiLU": "hardswish",
    "use nn.Tanh": "hardtanh",
    _POLYNOMIAL: "atan cos erf exp exp2 expm1 log log10 log1p log2 reciprocal rsqrt sin sqrt tan",
    "use x ** k for a whole number k, or a polynomial": "float_power pow",
    "use x / n: a secret cannot be rounded": "ceil div floor floor_divide fmod frac remainder "
    "round trunc",
    "use x / y for a constant y": "true_divide",
    # Decisions.
    "return the difference: the client compares after decrypting": "eq ge gt isclose isfinite "
    "isnan le logical_and logical_not logical_or lt ne sign",
    "compute both, and add them with constant weights: a secret cannot choose": "cond where",
    "write the steps out, as a Python loop does: a secret cannot end a loop": "while_loop",
    "multiply by a constant mask of zeros and ones": "masked_fill tril triu",
    "use the tensor itself: its values are known only when the program runs": "item nonzero "
    "_local_scalar_dense",
    "return the values: the client takes the largest or smallest after decrypting": "aminmax "
    "amin amax fmax fmin kthvalue maximum median min minimum sort topk",
    "return the scores: the client takes the largest after decrypting": "argmax argmin argsort max",
    "return the scores: the client takes the softmax after decrypting": "_log_softmax _softmax "
    "log_softmax logsumexp softmax",
    "return both: the client takes the angle after decrypting": "atan2",
    "return queries, keys and values: the client computes the attention": "_native_multi_head_"
    "attention scaled_dot_product_attention",
    # Layers.
    "make its layer two, and use first(x) * torch.sigmoid(second(x))": "glu",
    "write each step out with nn.Linear, torch.sigmoid and torch.tanh, on its own input": "gru "
    "gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    "use torch.dot(x, w @ y) for each matrix w of the weight": "bilinear",
    "use nn.AvgPool2d": "max_pool2d max_pool2d_with_indices lp_pool2d",
    "use nn.AdaptiveAvgPool2d": "adaptive_max_pool2d",
    "use its 2d form on images of height 1, x.unsqueeze(-2)": "adaptive_avg_pool1d avg_pool1d "
    "conv1d",
    "use nn.AvgPool2d on images of height 1, x.unsqueeze(-2)": "adaptive_max_pool1d max_pool1d "
    "max_pool1d_with_indices",
    "use nn.Conv2d, or nn.Linear on the flat image": "conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d",
    "use nn.BatchNorm1d, whose statistics are constants in eval mode": "layer_norm rms_norm",
    "use nn.BatchNorm2d, whose statistics are constants in eval mode": "group_norm instance_norm",
    "use a linear layer on a one-hot vector": "embedding",
    "use nn.Linear, or matrix @ x and a sum": "addmm addmv addbmm baddbmm",
    "use matrix @ x for each vector on its own": "bmm einsum inner kron tensordot",
    "use products and sums: x + x * y": "addcdiv addcmul lerp",
    # Sums and products.
    "use torch.dot(x, y)": "vdot",
    "repeat the vectors by constant matrices, (a @ x) * (b @ y)": "addr outer",
    "return (x * y).sum(), (x * x).sum() and (y * y).sum(): the client takes the roots and "
    "divides": "cosine_similarity",
    "use (x * torch.eye(n)).sum()": "trace",
    "use (x * torch.eye(n)).sum(1) for the diagonal of a matrix, and a constant matrix of zeros "
    "and ones to put a vector there": "diag diag_embed diagonal",
    "use x ** k, or a product of several inputs": "cumprod prod",
    "use (x * x).mean() - x.mean() ** 2": "var var_mean",
    "use the variance, (x * x).mean() - x.mean() ** 2: the client takes the root": "std std_mean",
    "use (x * x).sum(): the client takes the root": "linalg_norm linalg_vector_norm norm",
    "multiply by a constant matrix of zeros and ones": "cumsum diff",
    # Elements.
    "return several results, or add parts that constant matrices put in place": "cat concat "
    "concatenate dstack hstack stack vstack",
    f"{_MATRIX}, or return all: the client picks": "chunk gather index index_select select slice "
    "split split_with_sizes take unbind unfold unsafe_split",
    "use the padding of nn.Conv2d, or a constant matrix with rows of zeros": "constant_pad_nd pad "
    "reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d",
    "make a new tensor by sums and products: nothing writes into a part of one": "copy index_put "
    "scatter scatter_add select_scatter slice_scatter",
    "multiply the flat image by a constant matrix that orders the elements": "channel_shuffle "
    "pixel_shuffle pixel_unshuffle",
    "multiply the flat image by a constant matrix, or resize in the client": "upsample_bicubic2d "
    "upsample_bilinear2d upsample_linear1d",
    "order the axes in the client, or permute the weights that follow": "flip movedim permute t "
    "transpose",
    "use torch.ones(n, 1) @ x.reshape(1) to repeat one number, or repeat in the client": "expand "
    "broadcast_tensors expand_as repeat repeat_interleave tile upsample_nearest2d",
    "write the constant with its shape, as in torch.zeros(n)": "empty_like full_like new_empty "
    "new_full new_ones new_zeros ones_like zeros_like",
}

INSTEAD: Mapping[str, str] = {
    name: advice for advice, names in _NAMES.items() for name in names.split()
}
"""By the name of the operator without its library and overload, such as `max_pool2d`."""
