"""aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor

If min == max, the range is that of the elements. If all elements are equal, the range extends by 1 on both
sides. NaN and values out of range are not counted. Integers are counted as fp64 numbers.
"""

import torch
from blocks.creation import fill
from blocks.histograms import bin_counts, range_of

OVERLOADS = ("aten::histc",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, bins=100, min=0, max=0):
    if self.dtype == torch.bool or bins <= 0:
        raise RuntimeError(f"histc needs bins > 0 and a numeric dtype, got {bins} and {self.dtype}")
    from_elements, x = min == max, self
    if not self.is_floating_point():
        x = fill(torch.empty(self.shape, dtype=torch.float64, device=self.device), self)
    counts = bin_counts(x, bins, range_of(x, None if from_elements else min, max, 1.0))
    return counts if x is self else fill(torch.empty(bins, dtype=self.dtype, device=self.device), counts)
