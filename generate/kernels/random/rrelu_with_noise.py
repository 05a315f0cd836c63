"""aten::rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool
    training=False, Generator? generator=None) -> Tensor

In training, the random slopes are stored in `noise`.
"""

import torch
from blocks.random_slopes import random_slopes

OVERLOADS = ("aten::rrelu_with_noise",)
DTYPES = ("bfloat16", "float32", "float64")


def wrapper(self, noise, lower=0.125, upper=1.0 / 3.0, training=False, generator=None, *, philox):
    return random_slopes(
        self, noise, lower, upper, training, philox, torch.empty_like(self, memory_format=torch.contiguous_format)
    )
