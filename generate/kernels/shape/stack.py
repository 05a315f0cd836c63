"""aten::stack(Tensor[] tensors, int dim=0) -> Tensor

The output is what cat would give, with dim split in two: channels-last where all inputs are, else contiguous. One
launch copies up to 32 contiguous tensors of one type, as tuples of pointers, row by row (all dimensions from dim on)
into the rows of a contiguous output; a program finds its tensor by the first program of each. Otherwise each tensor is
copied by a flat grid of its own into its slice of the output.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::stack",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def strided(i, shape, stride):
    """Offset, in elements, of row-major flat index i in a tensor of this shape and stride."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, 0, -1):
        offset += (i % shape[k]) * stride[k]
        i = i // shape[k]
    if len(shape) > 0:
        offset += i * stride[0]
    return offset


@triton.jit
def convert(x, dtype: tl.constexpr):
    """x in another type; fp16 and bf16 are made from fp32, as in ATen."""
    return x.to(tl.float32).to(dtype) if dtype.is_fp16() or dtype.is_bf16() else x.to(dtype)


@triton.jit
def kernel_stack(x_ptr, out_ptr, n, shape, x_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=mask)
    tl.store(out_ptr + strided(i, shape, out_stride), convert(x, out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def pick(values, firsts):
    """The value of the tensor that this program works on: the last whose first program is not after this one."""
    place = 2 * tl.program_id(0) + 1
    value = values[0]
    for k in tl.static_range(1, len(values)):
        value = tl.where(place >= firsts[k], values[k], value)
    return value


@triton.jit
def kernel_stack_rows(
    xs, out_ptr, rows, row_stride, firsts, starts, widths, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Contiguous tensors, each of whose rows becomes a part of a row of the output."""
    place = tl.program_id(0) - pick(firsts, firsts) // 2
    width = pick(widths, firsts)
    tiles = tl.cdiv(width, BLOCK_N)
    row = (place // tiles).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = (place % tiles).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (row < rows) & (column < width)
    x = tl.load(pick(xs, firsts) + row * width + column, mask=mask)
    tl.store(out_ptr + row * row_stride + pick(starts, firsts) + column, x, mask=mask)


def common_format(tensors):
    for memory_format, dims in ((torch.channels_last, 4), (torch.channels_last_3d, 5)):
        if tensors[0].dim() == dims and all(
            t.is_contiguous(memory_format=memory_format) and not t.is_contiguous() for t in tensors
        ):
            return memory_format
    return torch.contiguous_format


def stack_rows(tensors, widths, out, rows):
    """All tensors contiguous and of the output's type: up to 32 in a launch.

    First programs v are given as 2 * v + 1, since Triton compiles anew for integers that are 1 or multiples of 16.
    """
    BLOCK_N = min(triton.next_power_of_2(max(widths)), 4096)
    BLOCK_M = min(triton.next_power_of_2(rows), 4096 // BLOCK_N)
    row_tiles = triton.cdiv(rows, BLOCK_M)
    starts, width = [], 0
    for w in widths:
        starts.append(width)
        width += w
    for at in range(0, len(tensors), 32):
        firsts, programs = [], 0
        for w in widths[at : at + 32]:
            firsts.append(2 * programs + 1)
            programs += row_tiles * -(-w // BLOCK_N)
        kernel_stack_rows[(programs,)](
            tuple(tensors[at : at + 32]),
            out,
            rows,
            width,
            tuple(firsts),
            tuple(starts[at : at + 32]),
            tuple(widths[at : at + 32]),
            BLOCK_M=BLOCK_M,
            BLOCK_N=BLOCK_N,
            num_warps=8,
        )
    return out


def wrapper(tensors, dim=0):
    first = tensors[0]
    dtype = first.dtype
    for other in {t.dtype for t in tensors}:
        dtype = torch.promote_types(dtype, other)
    dim = dim % (first.dim() + 1)
    if dim == first.dim():
        out = torch.empty((*first.shape, len(tensors)), dtype=dtype, device=first.device)
    else:
        size = [*first.shape[:dim], len(tensors) * first.shape[dim], *first.shape[dim + 1 :]]
        out = torch.empty(size, dtype=dtype, device=first.device, memory_format=common_format(tensors))
        out = out.unflatten(dim, (len(tensors), first.shape[dim]))
    n = first.numel()
    if out.is_contiguous() and all([t.is_contiguous() and t.dtype == dtype for t in tensors]):
        width = math.prod(first.shape[dim:])
        return stack_rows(tensors, [width] * len(tensors), out, math.prod(first.shape[:dim])) if n else out
    for k, t in enumerate(tensors):
        part = out.select(dim, k)
        kernel_stack[(triton.cdiv(n, 4096),)](
            t, part, n, tuple(t.shape), t.stride(), part.stride(), BLOCK=4096, num_warps=8
        )
    return out
