"""Max unpooling: pooled values return to the positions they came from."""

import math

import torch
import triton
import triton.language as tl
from blocks.creation import fill
from blocks.limits import INT32_MAX
from blocks.offsets import integer_values, integers, plain, plain_value, reach
from blocks.windows import batched, place_of, suggested_format


@triton.jit
def unpool_kernel(
    x_ptr,
    index_ptr,
    out_ptr,
    n,
    area,
    sizes,
    strides,
    index_strides,
    out_strides,
    WIDTH: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Scatter BLOCK values to their indices in the output planes.

    An index that is out of bounds writes nothing.

    Args:
        x_ptr: [batch, channel, ...] with these sizes, read with `strides`.
        index_ptr: the same shape, int64, positions in the output plane, read with `index_strides`.
        out_ptr: planes with `area` elements, written.
        n: elements of x, encoded by `plain`, as are all integers.
        area: elements per output plane.
        sizes: shape of x.
        strides: strides of x.
        index_strides: strides of the indices.
        out_strides: strides between batches, between channels and between a plane's elements, which are evenly
            spaced.
        WIDTH: number of dimensions.
        WIDE: offsets need int64.
        BLOCK: elements per program.
    """
    i = tl.program_id(0).to(tl.int64 if WIDE else tl.int32) * BLOCK + tl.arange(0, BLOCK)
    mask = i < plain_value(n)
    plane_coordinates = place_of(i, integer_values(sizes, True), False)
    strides, index_strides = integer_values(strides, True), integer_values(index_strides, True)
    out_strides = integer_values(out_strides, True)
    offset, index_offset = tl.zeros_like(i), tl.zeros_like(i)
    for k in tl.static_range(WIDTH):
        offset += plane_coordinates[k] * strides[k]
        index_offset += plane_coordinates[k] * index_strides[k]
    index = tl.load(index_ptr + index_offset, mask=mask, other=-1).to(tl.int64)
    mask = mask & (index >= 0) & (index < plain_value(area))
    x = tl.load(x_ptr + offset, mask=mask, other=0)
    # if an index occurs twice in a plane, any of its values may win, as in ATen
    tl.store(
        out_ptr
        + plane_coordinates[0] * out_strides[0]
        + plane_coordinates[1] * out_strides[1]
        + index * out_strides[2],
        x,
        mask=mask,
    )


def unpool(x, indices, axes, output_size):
    if len(output_size) != axes or x.dim() not in (axes + 1, axes + 2) or x.shape != indices.shape:
        raise RuntimeError(
            f"cannot unpool {tuple(x.shape)} with indices {tuple(indices.shape)} to {tuple(output_size)}"
        )
    if indices.dtype != torch.int64 or 0 in x.shape[x.dim() - axes - 1 :] or min(output_size) < 0:
        raise RuntimeError(
            f"expected int64 indices and an input without empty dimensions, got {indices.dtype} and {tuple(x.shape)}"
        )
    format = suggested_format(x) if axes == 2 else torch.contiguous_format
    shape = (*x.shape[: x.dim() - axes], *output_size)
    out = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=format)
    fill(out, 0)
    n, area = x.numel(), math.prod(output_size)
    if n and area:
        inputs, index, planes = [batched(t, axes) for t in (x, indices, out)]
        tensors = inputs.stride(), index.stride()
        # the last program's lanes go beyond n by less than 1024
        wide = max(n, out.numel(), reach(inputs.shape, tensors)) > INT32_MAX - 1024
        unpool_kernel[(triton.cdiv(n, 1024),)](
            inputs,
            index,
            planes,
            plain(n),
            plain(area),
            integers(inputs.shape, True),
            *[integers(s, True) for s in tensors],
            integers((planes.stride(0), planes.stride(1), planes.stride(-1)), True),
            WIDTH=axes + 2,
            WIDE=wide,
            BLOCK=1024,
        )
    return out
