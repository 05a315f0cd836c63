"""aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group,
    float eps) -> (Tensor, Tensor, Tensor)

Statistics are computed per channel group and sample.
"""

from blocks.normalization import group_norm

OVERLOADS = ("aten::native_group_norm",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(input, weight, bias, N, C, HxW, group, eps):
    return group_norm(input, weight, bias, (N, C, HxW), group, eps)
