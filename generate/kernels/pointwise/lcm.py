"""aten::lcm(Tensor self, Tensor other) -> Tensor

Computes |x / gcd(x, y) * y|. Euclid's algorithm runs until every element in the block is done.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::lcm",)
DTYPES = ("int16", "int32", "int64", "int8", "uint8")


@triton.jit
def lcm(x, y):
    a, b = tl.abs(x) + tl.zeros_like(y), tl.abs(y) + tl.zeros_like(x)
    while tl.max((b != 0).to(tl.int32), 0) > 0:
        safe = tl.where(b == 0, 1, b)
        a, b = tl.where(b == 0, a, b), tl.where(b == 0, 0, a % safe)
    return tl.where(a == 0, 0, tl.abs(x // tl.where(a == 0, 1, a) * y))


def wrapper(self, other, *, out=None):
    return elementwise(lcm, self, other, out=out)
