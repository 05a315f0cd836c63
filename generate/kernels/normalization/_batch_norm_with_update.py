"""aten::_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!)
    running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)

The reserve for the backward pass is empty.
"""

import torch
from blocks.normalization import batch_norm

OVERLOADS = ("aten::_batch_norm_with_update",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(input, weight, bias, running_mean, running_var, momentum, eps):
    results = batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return *results, torch.empty(0, dtype=torch.uint8, device=input.device)
