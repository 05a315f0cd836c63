"""aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor

Computed with Welford's update; see blocks/moments.py.
"""

from blocks.moments import moments, variance_of_moments

OVERLOADS = ("aten::var.correction",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, dim=None, *, correction=None, keepdim=False):
    return moments(self, dim, correction, keepdim, variance_of_moments, self.dtype)
