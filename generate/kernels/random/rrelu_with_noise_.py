"""aten::rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331,
    bool training=False, Generator? generator=None) -> Tensor(a!)

In training, the random slopes are stored in `noise`.
"""

from blocks.random_slopes import random_slopes

OVERLOADS = ("aten::rrelu_with_noise_",)
DTYPES = ("bfloat16", "float32", "float64")


def wrapper(self, noise, lower=0.125, upper=1.0 / 3.0, training=False, generator=None, *, philox):
    return random_slopes(self, noise, lower, upper, training, philox, self)
