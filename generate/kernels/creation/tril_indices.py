"""aten::tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None,
    bool? pin_memory=None) -> Tensor

Rows come in three kinds: empty rows above the triangle, then rows that grow by one element each, then full
rows. In the second kind, an element's row is the root of a quadratic equation. It is computed in fp64 and
then corrected by integer comparisons.
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise, flat_index

OVERLOADS = ("aten::tril_indices",)
DTYPES = ("int32", "int64")


@triton.jit
def lower_place(i, above, first, tall, count, columns):
    """Return the row and column of element i.

    The first `above` rows are empty. The next `tall` rows hold `count` elements together, and the first of
    them has `first` elements. All rows below have `columns` elements.
    """
    odd = 2 * first - 1
    growing = ((tl.sqrt(odd.to(tl.float64) * odd.to(tl.float64) + 8 * i.to(tl.float64)) - odd) * 0.5).to(tl.int64)
    growing -= (growing * (odd + growing) // 2 > i).to(tl.int64)
    growing += ((growing + 1) * (odd + growing + 1) // 2 <= i).to(tl.int64)
    rest = i - count
    row = tl.where(rest < 0, growing, tall + rest // columns)
    return above + row, tl.where(rest < 0, i - growing * (odd + growing) // 2, rest % columns)


def wrapper(row, col, offset=0, *, dtype=torch.int64, layout=None, device=None, pin_memory=None):
    if row < 0 or col < 0 or dtype not in (None, torch.int32, torch.int64):
        raise RuntimeError(f"expected row >= 0, col >= 0 and int32 or int64, got {row}, {col} and {dtype}")
    above = min(max(-offset, 0), row)
    first = min(max(offset, 0) + 1, col)
    tall = min(row - above, col - first + 1)
    count = tall * (2 * first + tall - 1) // 2
    n = count + (row - above - tall) * col
    out = torch.empty((2, n), dtype=dtype or torch.int64, device=device)
    numbers = above, first, tall, count, col
    elementwise(lower_place, numbers=numbers, source=(flat_index,), common=torch.int64, out=out.unbind(0))
    return out
