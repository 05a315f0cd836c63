"""aten::ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor

With left=False, the transposed product is computed.
"""

from blocks.householder import reflected
from blocks.substitution import column_major
from blocks.types import identical_dtypes

OVERLOADS = ("aten::ormqr",)
DTYPES = ("float32", "float64")


def wrapper(self, input2, input3, left=True, transpose=False):
    identical_dtypes(self, input2, input3)
    if min(self.dim(), input3.dim()) < 2 or input2.shape[:-1] != self.shape[:-2]:
        raise RuntimeError(
            f"ormqr: {tuple(self.shape)}, tau {tuple(input2.shape)} and {tuple(input3.shape)} do not fit"
        )
    m, count = input3.shape[-2 if left else -1], input2.shape[-1]
    if self.shape[-2] != m or count != min(m, self.shape[-1]) or input3.shape[:-2] != self.shape[:-2]:
        raise RuntimeError(
            f"ormqr: {tuple(self.shape)}, tau {tuple(input2.shape)} and {tuple(input3.shape)} do not fit"
        )
    out = column_major(input3.shape, input3)
    if left:
        return reflected(self, input2, input3, out, transpose)
    return reflected(self, input2, input3.mT, out.mT, not transpose).mT
