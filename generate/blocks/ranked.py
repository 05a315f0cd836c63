"""Order statistics: each row's element with a given rank in ascending order, NaN last."""

import torch
import triton
import triton.language as tl
from blocks.creation import fill
from blocks.offsets import strided, walk
from blocks.sorting import sorted_keys

__all__ = ["middle_of", "pick_ranked", "ranked", "row_results"]

MAX_RANK_DIMENSIONS = 25  # ATen's MAX_TENSORINFO_DIMS (ATen/cuda/detail/TensorInfo.cuh)


@triton.jit
def numbers_before_nan(keys_ptr, row, m, n, depth, TYPE: tl.constexpr):
    """Return how many elements in each sorted row are not NaN; NaN has the largest key."""
    low = tl.zeros_like(row) + n
    if TYPE.is_floating():
        NAN: tl.constexpr = 0x7FFFFFFFFFFFFFFF if TYPE.is_fp64() else 0x7FFFFFFF
        low, high = tl.zeros_like(row), low
        for _ in range(depth):  # invariant: elements before `low` are not NaN, and those from `high` on are
            middle = (low + high) // 2
            going = (row < m) & (low < high)
            number = tl.load(keys_ptr + row * n + middle, mask=going, other=0) < NAN
            low = tl.where(going & number, middle + 1, low)
            high = tl.where(going & ~number, middle, high)
    return low


@triton.jit
def ranked_kernel(
    x_ptr,
    sorted_items,
    places_ptr,
    outs,
    m,
    n,
    k,
    depth,
    across,
    along,
    KIND: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Select one element and its index from each row of sorted keys.

    Args:
        x_ptr: m rows with n elements, read; `across` walks the rows and `along` the elements.
        sorted_items: (keys, positions), [m, n] each, in ascending order, read.
        places_ptr: [m] ranks for KIND "given", else None.
        outs: (elements,) or (elements, indices), [m] each, written.
        m: number of rows.
        n: elements per row.
        k: rank, counted from 0, for KIND "kth".
        depth: steps in a binary search over n.
        across: walk from row to row.
        along: walk along a row.
        KIND: "kth"; "median": the middle element, or the first NaN if there is one; "nanmedian": the middle
            element among those that are not NaN; or "given".
        BLOCK: rows per program.
    """
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = row < m
    if KIND == "kth":
        position = tl.zeros_like(row) + k
    elif KIND == "given":
        position = tl.load(places_ptr + row, mask=mask, other=0)
    else:
        low = numbers_before_nan(sorted_items[0], row, m, n, depth, x_ptr.dtype.element_ty)
        position = (low - 1) // 2
        if KIND == "median":
            position = tl.where(low < n, low, position)
        position = tl.maximum(position, 0)  # a row with NaN alone has no middle, and gives its first element
    item = tl.load(sorted_items[1] + row * n + position, mask=mask, other=0).to(tl.int64)
    x_ptr += strided(row, across[0], across[1][0], False, False)
    value = tl.load(x_ptr + strided(item, along[0], along[1][0], False, False), mask=mask)
    tl.store(outs[0] + row, value, mask=mask)
    if len(outs) > 1:
        tl.store(outs[1] + row, item, mask=mask)


def expect_few_dimensions(x):
    """Raise RuntimeError for more dimensions than MAX_RANK_DIMENSIONS, as ATen's CUDA kernels for ranks do."""
    if x.dim() > MAX_RANK_DIMENSIONS:
        raise RuntimeError(f"expected at most {MAX_RANK_DIMENSIONS} dimensions, got {x.dim()}")


def row_results(x, dim, keepdim):
    """Return new tensors for one element per row along dim, and for its index.

    Raises IndexError if the dimension is empty.
    """
    expect_few_dimensions(x)
    if x.dim() and not x.shape[dim]:
        raise IndexError(f"dimension {dim} is empty in {tuple(x.shape)}")
    shape = list(x.shape)
    if shape and keepdim:
        shape[dim] = 1
    elif shape:
        shape.pop(dim)
    return [torch.empty(shape, dtype=dtype, device=x.device) for dtype in (x.dtype, torch.int64)]


def ranked(kind, x, dims, outs, k=0):
    """Return elements with a rank in x, sorted over these dimensions, and indices if `outs` has two tensors.

    `kind` and `k` are as in `ranked_kernel`.
    """
    if outs[0].numel():
        pick_ranked(kind, x, dims, sorted_keys(x, dims), outs, k=k)
    return tuple(outs)


def middle_of(kind, x, dim, keepdim):
    """Return the median or nanmedian along dim with its indices, or over all elements without them if dim is None."""
    if x.dtype == torch.bool:
        result = middle_of(kind, x.view(torch.uint8), dim, keepdim)
        return result.view(torch.bool) if dim is None else (result[0].view(torch.bool), *result[1:])
    if dim is not None:
        return ranked(kind, x, [dim % x.dim()] if x.dim() else [], row_results(x, dim, keepdim))
    expect_few_dimensions(x)
    out = torch.empty([], dtype=x.dtype, device=x.device)
    if x.numel():
        return ranked(kind, x, list(range(x.dim())), [out])[0]
    none = {torch.int32: -(2**31), torch.int64: -(2**63)}.get(x.dtype, 0)  # ATen's conversion of NaN
    return fill(out, float("nan") if x.dtype.is_floating_point else none)


def pick_ranked(kind, x, dims, sorted_items, outs, places=None, k=0):
    """Select elements and indices as `ranked` does, from rows that are sorted already."""
    m, n = sorted_items[0].shape
    ranked_kernel[(triton.cdiv(m, 128),)](
        x,
        tuple(sorted_items),
        places,
        tuple(outs),
        m,
        n,
        k,
        len([bit for bit in range(63) if n >> bit]),
        walk([x], [d for d in range(x.dim()) if d not in dims], False),
        walk([x], dims, False),
        KIND=kind,
        BLOCK=128,
    )
