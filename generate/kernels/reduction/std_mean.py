"""aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)
    -> (Tensor, Tensor)

Computed with Welford's update; see blocks/moments.py.
"""

from blocks.moments import deviation_and_mean, moments

OVERLOADS = ("aten::std_mean.correction",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, dim=None, *, correction=None, keepdim=False):
    return moments(self, dim, correction, keepdim, deviation_and_mean, (self.dtype, self.dtype))
