"""aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor

With replacement, each sample is the position of a uniform number among the cumulative sums of the weights.
Without replacement, each category draws an exponential waiting time with its weight as the rate. The samples
are the categories with the smallest times (Efraimidis and Spirakis, Weighted random sampling with a
reservoir, 2006).
"""

import torch
import triton
import triton.language as tl
from blocks.drawn_numbers import positive_units64
from blocks.elementwise import elementwise
from blocks.random import units64
from blocks.scan import scan_along
from blocks.search import searched
from blocks.sorting import sort_into

OVERLOADS = ("aten::multinomial",)
DTYPES = ("bfloat16", "float16", "float32", "float64")

MOST_CATEGORIES = 2**24  # as in ATen, where fp32 has to represent every category number


@triton.jit
def scaled_unit(u, total):
    return u * total


@triton.jit
def waiting_time_of(u, weight):
    """Return a waiting time: infinity for weight 0, and more than 0 for other weights."""
    drawn = tl.maximum(-tl.log(u), 5.5e-17) / tl.where(weight > 0, weight, 1.0)
    return tl.where(weight > 0, drawn, float("inf"))


def wrapper(self, num_samples, replacement=False, *, generator=None, philox):
    if self.dim() not in (1, 2) or num_samples <= 0 or self.shape[-1] == 0:
        raise RuntimeError(f"cannot draw {num_samples} samples from {tuple(self.shape)}")
    if self.shape[-1] > MOST_CATEGORIES:
        raise RuntimeError(f"expected at most 2^24 categories, got {self.shape[-1]}")
    if not replacement and num_samples > self.shape[-1]:
        raise RuntimeError(f"cannot draw {num_samples} samples without replacement from {self.shape[-1]} categories")
    shape = (*self.shape[:-1], num_samples)
    indices = torch.empty(shape, dtype=torch.int64, device=self.device)
    if replacement:
        sums = scan_along("sum", self, -1, torch.float64)
        drawn = torch.empty(shape, dtype=torch.float64, device=self.device)
        elementwise(scaled_unit, sums[..., -1:], source=(units64, *philox), common=torch.float64, out=drawn)
        return searched(sums, drawn, indices, True, width=num_samples)
    times = torch.empty(self.shape, dtype=torch.float64, device=self.device)
    elementwise(waiting_time_of, self, source=(positive_units64, *philox), common=torch.float64, out=times)
    return sort_into(times, -1, [torch.empty(shape, dtype=torch.float64, device=self.device), indices])[1]
