"""aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor

Where min is max, the range is that of the elements, and from 1 less to 1 more where these are all equal. NaN and what
lies outside counts nowhere.
"""

from blocks.histograms import bin_counts, range_of

OVERLOADS = ("aten::histc",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, bins=100, min=0, max=0):
    if not self.is_floating_point() or bins <= 0:
        raise RuntimeError(f"{bins} bins for {self.dtype}")
    own = min == max
    return bin_counts(self, bins, range_of(self, None if own else min, max, 1.0))
