"""Functions of Triton's language for a chip without tl.erf."""

import triton
import triton.language as tl
from blocks.error_functions import exp_minus_square, scaled_erfc
from blocks.functions import polynomial


@triton.jit
def tl_erf(x):
    """Return erf(x) in fp32 or fp64: the Taylor series for |x| < 0.5, and else 1 - erfc(|x|) with x's sign.

    The coefficients are those of erf(x) / x in x^2, 2 / sqrt(pi) (-1)^k / (k! (2k + 1)), up to k = 12 in fp64 and 6
    in fp32.
    """
    if x.dtype.is_fp64():
        near = x * polynomial(x * x, (
            9.422759064650411e-11, -1.2290555301717926e-09, 1.4807192815879218e-08, -1.6365844691234924e-07,
            1.6462114365889246e-06, -1.492565035840625e-05, 0.00012055332981789664, -0.0008548327023450852,
            0.005223977625442188, -0.026866170645131252, 0.11283791670955126, -0.37612638903183754,
            1.1283791670955126,
        ))  # fmt: skip
    else:
        near = x * polynomial(x * x, (
            0.00012055332981789664, -0.0008548327023450852, 0.005223977625442188, -0.026866170645131252,
            0.11283791670955126, -0.37612638903183754, 1.1283791670955126,
        ))  # fmt: skip
    far = 1 - exp_minus_square(x) * scaled_erfc(tl.abs(x))
    return tl.where((tl.abs(x) < 0.5) | (x != x), near, tl.where(x < 0, far * -1.0, far))
