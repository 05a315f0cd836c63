"""aten::triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None,
    bool? pin_memory=None) -> Tensor

Full rows come first, then rows that shrink by one element each. In the latter, an element's row is the root
of a quadratic equation. It is computed in fp64 and then corrected by integer comparisons.
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise, flat_index

OVERLOADS = ("aten::triu_indices",)
DTYPES = ("int32", "int64")


@triton.jit
def upper_place(i, whole, columns, longest):
    """Return the row and column of element i.

    The first `whole` rows have all columns. The first row below has `longest` elements.
    """
    rest = i - whole * columns
    twice = (2 * longest + 1).to(tl.float64)
    root = tl.sqrt(tl.maximum(twice * twice - 8 * rest.to(tl.float64), 0))
    row = ((twice - root) * 0.5).to(tl.int64)
    row -= (row * (2 * longest + 1 - row) // 2 > rest).to(tl.int64)
    row += ((row + 1) * (2 * longest - row) // 2 <= rest).to(tl.int64)
    col = rest - row * (2 * longest + 1 - row) // 2 + columns - longest + row
    return tl.where(rest < 0, i // columns, whole + row), tl.where(rest < 0, i % columns, col)


def wrapper(row, col, offset=0, *, dtype=torch.int64, layout=None, device=None, pin_memory=None):
    if row < 0 or col < 0 or dtype not in (None, torch.int32, torch.int64):
        raise RuntimeError(f"expected row >= 0, col >= 0 and int32 or int64, got {row}, {col} and {dtype}")
    full_rows = min(max(1 - offset, 0), row)
    longest = min(max(col - full_rows - offset, 0), col)
    shrinking = min(row - full_rows, longest)
    n = full_rows * col + shrinking * (2 * longest - shrinking + 1) // 2
    out = torch.empty((2, n), dtype=dtype or torch.int64, device=device)
    numbers = full_rows, col, longest
    elementwise(upper_place, numbers=numbers, source=(flat_index,), common=torch.int64, out=out.unbind(0))
    return out
