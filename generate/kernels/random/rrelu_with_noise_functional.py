"""aten::rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331,
    bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)

In training, noise_out holds the random slopes. Otherwise it is a copy of `noise`.
"""

import torch
from blocks.creation import fill
from blocks.random_slopes import random_slopes

OVERLOADS = ("aten::rrelu_with_noise_functional",)
DTYPES = ("bfloat16", "float32", "float64")


def wrapper(self, noise, lower=0.125, upper=1.0 / 3.0, training=False, generator=None, *, philox):
    drawn = torch.empty_like(noise)
    if not training:
        fill(drawn, noise)
    return random_slopes(self, drawn, lower, upper, training, philox, torch.empty_like(self)), drawn
