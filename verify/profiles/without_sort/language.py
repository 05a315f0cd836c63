"""Functions of Triton's language for a chip without tl.sort."""

import triton
import triton.language as tl


@triton.jit
def sorted_before(x, y):
    """Return True where x comes before y in ascending order, in which NaN is last."""
    return (x < y) | ((x == x) & (y != y))


@triton.jit
def tl_sort(x, dim: tl.constexpr = None, descending: tl.constexpr = False):
    """Return x sorted along its last dimension: each element's position is the number of elements that come before it.

    The work is the square of the dimension's size, N, in 2 * N steps. `dim` can only be the last one, as in tl.sort.
    """
    N: tl.constexpr = x.shape[-1]
    tl.static_assert(dim is None or dim == len(x.shape) - 1 or dim == -1, "only the last dimension can be sorted")
    rows = tl.reshape(x, [x.numel // N, N])
    position = tl.arange(0, N)[None, :]
    rank = tl.zeros([x.numel // N, N], tl.int32)
    nothing = tl.full([1, 1], -0.0 if rows.dtype.is_floating() else 0, rows.dtype)  # a sum with it changes no element
    for k in range(N):
        other = tl.sum(tl.where(position == k, rows, nothing), 1)[:, None]
        before = sorted_before(rows, other) if descending else sorted_before(other, rows)
        equal = (sorted_before(rows, other) == 0) & (sorted_before(other, rows) == 0)
        rank += (before | (equal & (k < position))).to(tl.int32)
    result = tl.zeros_like(rows)
    for k in range(N):
        value = tl.sum(tl.where(position == k, rows, nothing), 1)[:, None]
        result = tl.where(position == tl.sum(tl.where(position == k, rank, 0), 1)[:, None], value, result)
    return tl.reshape(result, x.shape)
