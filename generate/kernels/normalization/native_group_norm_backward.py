"""aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N,
    SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)

With xhat = (x - mean) * rstd and g = grad * weight:

- grad_weight = sum(grad * xhat), and grad_bias = sum(grad).
- grad_input = rstd * (g - mean(g) - xhat * mean(g * xhat)).

Sums are first computed per channel and sample.
"""

from blocks.normalization import group_norm_gradients

OVERLOADS = ("aten::native_group_norm_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    return group_norm_gradients(grad_out, input, mean, rstd, weight, (N, C, HxW), group, output_mask)
