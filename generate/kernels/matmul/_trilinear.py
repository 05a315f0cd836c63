"""aten::_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim,
    int unroll_dim=1) -> Tensor

Multiplies three tensors and sums the product over `sumdim`. A tensor has one element along its `expand`
dimensions and is broadcast there. Summed dimensions that i3 lacks, except unroll_dim, are summed before the
multiplication by i3. This order affects the result if elements are infinite.

So the kernel computes matrix products of i1 and i2, one per term in the remaining sums, and multiplies each
by i3. If no dimension is summed first, it computes a single matrix product: the left operand's elements are
products of two tensors' elements. The right operand is then the tensor that leaves the fewest dimensions to
step through matrix by matrix.

Rows are the dimensions that the right operand lacks. Columns are the dimensions that only the right operand
has.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.creation import fill
from blocks.limits import PROCESSORS
from blocks.matmul import PART_STEPS, matmul_tile
from blocks.offsets import integer_values, integers, strided, walk
from blocks.product_tiles import SCALAR_TILE, tile_product
from blocks.reduction import reduce
from blocks.types import compute_types, identical_dtypes

OVERLOADS = ("aten::_trilinear",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")

SMALL_TRILINEAR = 4096  # elements below which integers are encoded, so that sizes and strides add no kernel variants


@triton.jit
def trilinear_kernel(
    left_ptr,
    right_ptr,
    third_ptr,
    out_ptr,
    sizes,
    batches,
    down,
    across,
    inner,
    outer,
    ACC: tl.constexpr,
    AFTER: tl.constexpr,
    TILE: tl.constexpr,
    PLAIN: tl.constexpr,
):
    """Compute a tile of one matrix, for part program_id(1) of the sums.

    Args:
        left_ptr: Left operand of the matrix products, read.
        right_ptr: Right operand of the matrix products, read.
        third_ptr: Third operand, read.
        out_ptr: [parts, elements in the result], written.
        sizes: (rows, columns, terms in the inner sum, terms in the outer sum, outer terms per part, result
            elements).
        batches: (shape, strides of each tensor) of the batch dimensions, from `walk`; likewise the next four.
        down: (shape, strides of each tensor) of the rows.
        across: (shape, strides of each tensor) of the columns.
        inner: (shape, strides of each tensor) of the dimensions that are summed first.
        outer: (shape, strides of each tensor) of the other summed dimensions.
        ACC: Triton type of the sums.
        AFTER: Multiply matrix products by the third operand. Otherwise multiply the left operand by the third
            one first.
        TILE: (rows, columns, terms) per tile.
        PLAIN: True if integers are encoded by `plain`.
    """
    M, N, K, terms, part, count = integer_values(sizes, PLAIN)
    ROWS: tl.constexpr = TILE[0]
    COLUMNS: tl.constexpr = TILE[1]
    width = tl.cdiv(N, COLUMNS)
    tiles = tl.cdiv(M, ROWS) * width
    batch = (tl.program_id(0) // tiles).to(tl.int64) + tl.arange(0, 1)
    row = (tl.program_id(0) % tiles // width).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = (tl.program_id(0) % tiles % width).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    pointers = left_ptr, right_ptr, third_ptr, out_ptr + tl.program_id(1).to(tl.int64) * count
    at, rows, cols = (), (), ()
    for t in tl.static_range(4):
        at = at + ((pointers[t] + strided(batch, batches[0], batches[1][t], False, PLAIN))[:, None],)
        rows = rows + (strided(row, down[0], down[1][t], False, PLAIN)[:, None],)
        cols = cols + (strided(col, across[0], across[1][t], False, PLAIN)[None, :],)
    mask = (row < M)[:, None] & (col < N)[None, :]
    acc = tl.zeros([ROWS, COLUMNS], ACC)
    first = tl.program_id(1).to(tl.int64) * part
    if AFTER:
        for term in range(first, tl.minimum(first + part, terms)):
            j = term + tl.arange(0, 1).to(tl.int64)
            product = tl.zeros([ROWS, COLUMNS], ACC)
            x_ptr = at[0] + rows[0] + strided(j, outer[0], outer[1][0], False, PLAIN)[:, None]
            y_ptr = at[1] + cols[1] + strided(j, outer[0], outer[1][1], False, PLAIN)[:, None]
            for start in range(0, K, TILE[2]):
                k = start + tl.arange(0, TILE[2]).to(tl.int64)
                x_at = x_ptr + strided(k, inner[0], inner[1][0], False, PLAIN)[None, :]
                y_at = y_ptr + strided(k, inner[0], inner[1][1], False, PLAIN)[:, None]
                x = tl.load(x_at, mask=(row < M)[:, None] & (k < K)[None, :], other=0)
                y = tl.load(y_at, mask=(k < K)[:, None] & (col < N)[None, :], other=0)
                product = tile_product(x.to(ACC), y.to(ACC), product)
            z_at = at[2] + rows[2] + cols[2] + strided(j, outer[0], outer[1][2], False, PLAIN)[:, None]
            acc += product * tl.load(z_at, mask=mask, other=0).to(ACC)
    else:
        for start in range(0, part, TILE[2]):
            k = first + start + tl.arange(0, TILE[2])
            inside = (row < M)[:, None] & (k < terms)[None, :]
            x_at = at[0] + rows[0] + strided(k, outer[0], outer[1][0], False, PLAIN)[None, :]
            z_at = at[2] + rows[2] + strided(k, outer[0], outer[1][2], False, PLAIN)[None, :]
            x = tl.load(x_at, mask=inside, other=0).to(ACC) * tl.load(z_at, mask=inside, other=0).to(ACC)
            y_at = at[1] + cols[1] + strided(k, outer[0], outer[1][1], False, PLAIN)[:, None]
            y = tl.load(y_at, mask=(k < terms)[:, None] & (col < N)[None, :], other=0)
            acc = tile_product(x, y.to(ACC), acc)
    tl.store(at[3] + rows[3] + cols[3], acc.to(out_ptr.dtype.element_ty), mask=mask)


def dims_of(dims, rank):
    """Return dimensions as sorted non-negative numbers; raise if one is out of range or occurs twice."""
    if any([not -rank <= d < rank for d in dims]):
        raise IndexError(f"dimensions {dims} are out of range for {rank}")
    sorted_dims = [d % rank for d in dims]
    if len(set(sorted_dims)) != len(sorted_dims):
        raise RuntimeError(f"dimensions {dims} repeat, with {rank} in all")
    return sorted(sorted_dims)


def operands_of(tensors, expands, sums, unroll_dim):
    """Return the tensors as views in their product's shape, and the result shape with size 1 for summed dimensions.

    The views are None if there is nothing to sum.
    """
    rank = tensors[0].dim() + len(expands[0])
    if any([t.dim() + len(e) != rank for t, e in zip(tensors, expands, strict=True)]) or not 0 <= unroll_dim < rank:
        raise RuntimeError(
            f"dimensions {[t.dim() for t in tensors]} do not fit expand {expands} and unroll_dim {unroll_dim}"
        )
    expands, views = [dims_of(e, rank) for e in expands], []
    for t, dims in zip(tensors, expands, strict=True):
        for d in dims:
            t = t.unsqueeze(d)
        views.append(t)
    sizes_of_dims = [[t.shape[d] for t, dims in zip(views, expands, strict=True) if d not in dims] for d in range(rank)]
    sizes = [[0, *present][-1] for present in sizes_of_dims]
    out_shape = [1 if d in sums else sizes[d] for d in range(rank)]
    if 0 in [sizes[unroll_dim], *out_shape, *[t.numel() for t in views]]:
        return None, out_shape
    views = [
        t if unroll_dim in dims else t.narrow(unroll_dim, 0, sizes[unroll_dim])
        for t, dims in zip(views, expands, strict=True)
    ]
    shape = [max([t.shape[d] for t in views]) if d in sums else sizes[d] for d in range(rank)]
    return [t.expand(shape) for t in views], out_shape


def layout_of(left, right, factors, kept):
    """Return the kept dimensions in three lists: batch, rows and columns.

    `factors` are the tensors that are multiplied by the left one.
    """
    right_dims = [d for d in kept if right.stride(d) or right.shape[d] == 1]
    right_only = [d for d in kept if not any([t.stride(d) for t in (left, *factors)])]
    batch = [d for d in kept if d in right_dims and d not in right_only]
    return batch, [d for d in kept if d not in right_dims], [d for d in right_dims if d in right_only]


def order_of(views, kept):
    """Return the (left, right, third) operands and their layout; the third is multiplied by the left one."""
    full, choices = views[0].shape, []
    for k, right in enumerate(views):
        left, third = [t for j, t in enumerate(views) if j != k]
        batch, down, across = layout_of(left, right, [third], kept)
        M, N = math.prod([full[d] for d in down]), math.prod([full[d] for d in across])
        choices.append((math.prod([full[d] for d in batch]), -min(M, N), -N, k, [left, right, third]))
    left, right, third = min(choices)[-1]
    return [left, right, third], layout_of(left, right, [third], kept)


def multiplied(views, sums, before, out):
    """Store the sums of products of the views in `out`; `before` lists the dimensions that are summed first."""
    full, kept_dims = views[0].shape, [d for d in range(out.dim()) if d not in sums]
    operands, layout = (views, layout_of(*views[:2], [], kept_dims)) if before else order_of(views, kept_dims)
    dims = [*layout, before, [d for d in sums if d not in before]]
    batch, M, N, K, terms = [math.prod([full[d] for d in group]) for group in dims]
    exact = out.dtype == torch.float64 or not out.dtype.is_floating_point
    tile = SCALAR_TILE if exact else matmul_tile(batch, M, N, K if before else terms, False, (64, 64))
    step = 1 if before else tile[2]
    tiles = batch * triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1])
    parts = max(min(2 * PROCESSORS // tiles, terms // (PART_STEPS * step)), 1)
    part = triton.cdiv(triton.cdiv(terms, parts), step) * step
    parts = triton.cdiv(terms, part)
    PLAIN = max(batch * M * N, K * terms) < SMALL_TRILINEAR
    opmath = torch.float32 if out.dtype in (torch.float16, torch.bfloat16) else out.dtype
    sums_out = out if parts == 1 else torch.empty((parts, *out.shape), dtype=opmath, device=out.device)
    trilinear_kernel[(tiles, parts)](
        *operands,
        sums_out,
        integers((M, N, K, terms, part, out.numel()), PLAIN),
        *[walk([*operands, out], group, PLAIN) for group in dims],
        ACC=compute_types(out.dtype)[1],
        AFTER=len(before) > 0,
        TILE=tile[:3],
        PLAIN=PLAIN,
        num_warps=tile[3],
    )
    if parts > 1:
        fill(out, reduce("sum", [sums_out], [0], dtype=out.dtype, common=opmath))


def wrapper(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim=1):
    tensors = [i1, i2, i3]
    identical_dtypes(*tensors)
    rank = i1.dim() + len(expand1)
    sums, alone = dims_of(sumdim, rank), dims_of(expand3, rank)
    views, shape = operands_of(tensors, [expand1, expand2, expand3], sums, unroll_dim)
    out = torch.empty(shape, dtype=i1.dtype, device=i1.device)
    if views is None:
        fill(out, 0)
    else:
        multiplied(views, sums, [d for d in sums if d in alone and d != unroll_dim], out)
    return out.view([size for d, size in enumerate(shape) if d not in sums])
