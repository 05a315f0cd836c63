"""aten::rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool
    training, bool self_is_result) -> Tensor

In training, `noise` holds the random slopes from the forward pass. Otherwise the slope is the mean of both
bounds.
"""

import triton
from blocks.elementwise import elementwise
from blocks.leaky import leaky_backward

OVERLOADS = ("aten::rrelu_with_noise_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def by_noise(noise, grad):
    return noise * grad


def wrapper(grad_output, self, noise, lower, upper, training, self_is_result, *, out=None):
    if training:
        return elementwise(by_noise, noise, grad_output, out=out)
    return leaky_backward(grad_output, self, (lower + upper) / 2, self_is_result, out)
