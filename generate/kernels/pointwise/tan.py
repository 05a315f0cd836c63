"""aten::tan(Tensor self) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import polynomial

OVERLOADS = ("aten::tan",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def tan_near(x):
    """Return tan(x) in fp32 for |x| < 50000.

    r is the difference between x and the nearest multiple of pi / 2, which is subtracted in three parts. A
    series in r^2 then computes tan(r). For odd multiples, the result is -1 / tan(r). It is computed with the
    reciprocal square root of tan(r)^2.
    """
    shifted = x * 0.6366197723675814 + 12582912.0  # adding 3 * 2^22 leaves the nearest integer in the last bits
    n = shifted - 12582912.0
    r = tl.fma(n, -1.570796251296997, x)
    r = tl.fma(n, -5.390302858158119e-15, tl.fma(n, -7.549789415861596e-08, r))
    s = r * r
    series = polynomial(
        s,
        (0.003843139779, 0.001185321652, 0.009962146999, 0.02162112741, 0.05399446472, 0.1333323094, 0.3333333398),
    )
    r = r + r * s * series
    inverse = tl.rsqrt(r * r)
    return tl.where((shifted.to(tl.int32, bitcast=True) & 1) == 1, r * -1.0 * inverse * inverse, r)


@triton.jit
def tan_of(x):
    if x.dtype.is_fp64():
        r = tl.sin(x) / tl.cos(x)
    else:
        r = tan_near(x)
        if tl.max(tl.abs(x).to(tl.int32, bitcast=True), 0) >= 0x47435000:  # 50000
            r = tl.sin(x) / tl.cos(x)
    return r


def wrapper(self, *, out=None):
    return elementwise(tan_of, self, to_float=True, out=out)
