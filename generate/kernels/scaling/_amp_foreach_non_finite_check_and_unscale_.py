"""aten::_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()

A program instance that loads an infinity or NaN stores 1 to found_inf. Nothing is read back.
"""

import triton
import triton.language as tl
from blocks.elementwise import multi_tensor_apply

OVERLOADS = ("aten::_amp_foreach_non_finite_check_and_unscale_",)
DTYPES = ("bfloat16", "float16", "float32")


@triton.jit
def unscale(grad, inv_scale, found_inf_ptr):
    """Return grad * inv_scale; if an element is not finite, store 1 to found_inf_ptr.

    All program instances store the same value, so the race is harmless.
    """
    finite = tl.abs(grad) < float("inf")  # False for NaN
    if tl.min(tl.zeros([1], tl.int32) + finite.to(tl.int32), 0) == 0:
        tl.store(found_inf_ptr, 1.0)
    return grad * inv_scale


def wrapper(self, found_inf, inv_scale):
    multi_tensor_apply(unscale, (self, inv_scale), (self,), pointers=(found_inf,))
