"""aten::logcumsumexp(Tensor self, int dim) -> Tensor"""

from blocks.scan import scan_along

OVERLOADS = ("aten::logcumsumexp",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, dim):
    return scan_along("logsumexp", self, dim, self.dtype)
