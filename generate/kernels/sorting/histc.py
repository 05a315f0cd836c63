"""aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor

Where min is max, the range is that of the elements, and from 1 less to 1 more where these are all equal. NaN and what
lies outside counts nowhere. Integers are counted as numbers of double precision.
"""

import torch
from blocks.creation import fill
from blocks.histograms import bin_counts, range_of

OVERLOADS = ("aten::histc",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, bins=100, min=0, max=0):
    if self.dtype == torch.bool or bins <= 0:
        raise RuntimeError(f"{bins} bins for {self.dtype}")
    own, x = min == max, self
    if not self.is_floating_point():
        x = fill(torch.empty(self.shape, dtype=torch.float64, device=self.device), self)
    found = bin_counts(x, bins, range_of(x, None if own else min, max, 1.0))
    return found if x is self else fill(torch.empty(bins, dtype=self.dtype, device=self.device), found)
