"""aten::poisson(Tensor self, Generator? generator=None) -> Tensor

Returns a random event count for each rate.
"""

import torch
from blocks.elementwise import elementwise
from blocks.poisson import events_of_rate, seeded_index

OVERLOADS = ("aten::poisson",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, generator=None, *, philox):
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    return elementwise(events_of_rate, self, source=(seeded_index, *philox), out=out)
