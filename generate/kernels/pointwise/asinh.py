"""aten::asinh(Tensor self) -> Tensor

log(|x| + sqrt(x^2 + 1)) as log1p of what is over 1, with the sign of x.
"""

import triton
import triton.language as tl
from blocks.arithmetic import divide, root
from blocks.elementwise import elementwise
from blocks.functions import log1p, with_sign

OVERLOADS = ("aten::asinh",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def asinh(x):
    size = tl.abs(x)
    near = log1p(size + divide(size * size, 1 + root(size * size + 1)))
    far = tl.log(size) + 0.6931471805599453
    return with_sign(tl.where(size < 1e9, near, far), x)


def wrapper(self, *, out=None):
    return elementwise(asinh, self, to_float=True, out=out)
