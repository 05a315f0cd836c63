"""Elementwise operations in two-dimensional tiles, for operands in another memory order or shared by rows.

A program in blocks/elementwise.py takes elements in the result's order. It would read single, distant
elements from an operand in another order, and the same element repeatedly from an operand that a row shares.
"""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.creation import as_bits, fill
from blocks.elementwise import elementwise
from blocks.limits import INT32_MAX
from blocks.offsets import TINY_TENSOR, coalesce, plain, plain_value, reach, sixteenths
from blocks.types import compute_types, convert, number_argument, number_value

__all__ = ["copy_into", "in_tiles"]

# Result bytes per tile for operands that rows share: 2048 fp32 elements, 8 for each thread in 8 warps.
TILE_BYTES = 8192


@triton.jit
def other_dimensions(ptr, rest, shape, stride, EVEN: tl.constexpr, ACROSS: tl.constexpr):
    """Advance the pointer to this flat index in all dimensions but ACROSS and the last."""
    for k in tl.static_range(len(shape) - 2, -1, -1):
        if k != ACROSS:
            size = plain_value(shape[k])
            ptr += rest % size * sixteenths(plain_value(stride[k]), EVEN)
            rest = rest // size
    return ptr


@triton.jit
def lanes_apart(i, stride, STEP: tl.constexpr, EVEN: tl.constexpr):
    return i if STEP == 1 else i * sixteenths(plain_value(stride), EVEN)


@triton.jit
def tiled_kernel(
    operands,
    out_ptr,
    shape,
    strides,
    FUNCTION: tl.constexpr,
    DOWN: tl.constexpr,
    ALONG: tl.constexpr,
    EVEN: tl.constexpr,
    COMMON: tl.constexpr,
    OPMATH: tl.constexpr,
    WIDE: tl.constexpr,
    ACROSS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Apply FUNCTION to one [BLOCK_M, BLOCK_N] tile.

    Args:
        operands: tuple of pointers, read, and encoded numbers.
        out_ptr: result, written.
        shape: merged dimensions, encoded by `plain`.
        strides: strides for each operand and the result, encoded by `plain`; () for a number.
        FUNCTION: device function with one value per operand.
        DOWN: per operand and result, the stride along ACROSS if it is 0 or 1, else 2; None for a number.
        ALONG: the same for the last dimension.
        EVEN: per operand and result, 16 divides the other strides; then the same for both tile dimensions'
            sizes.
        COMMON: type to which elements are converted.
        OPMATH: type to compute in.
        WIDE: offsets need int64.
        ACROSS: dimension along BLOCK_M.
        BLOCK_M: elements along ACROSS per tile.
        BLOCK_N: elements along the last dimension per tile.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    OUT: tl.constexpr = len(operands)
    LAST: tl.constexpr = len(shape) - 1
    m = sixteenths(plain_value(shape[ACROSS]), EVEN[OUT + 1])
    n = sixteenths(plain_value(shape[LAST]), EVEN[OUT + 2])
    across = tl.cdiv(n, BLOCK_N)
    columns = (tl.program_id(0) % across).to(INDEX) * BLOCK_N + tl.arange(0, BLOCK_N)
    tile, tiles = tl.program_id(0) // across, tl.cdiv(m, BLOCK_M)
    rows = (tile % tiles).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    rest = (tile // tiles).to(INDEX)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    values = ()
    for k in tl.static_range(len(operands)):
        if DOWN[k] is None:
            values = values + (number_value(operands[k], OPMATH),)
        else:
            ptr = other_dimensions(operands[k], rest, shape, strides[k], EVEN[k], ACROSS)
            down = lanes_apart(rows, strides[k][ACROSS], DOWN[k], EVEN[k])
            along = lanes_apart(columns, strides[k][LAST], ALONG[k], EVEN[k])
            if DOWN[k] and ALONG[k]:
                x = tl.load(ptr + (down[:, None] + along[None, :]), mask=inside, other=0)
            elif DOWN[k]:  # one load per row instead of one per element
                x = tl.load(ptr + down, mask=rows < m, other=0)[:, None]
            elif ALONG[k]:
                x = tl.load(ptr + along, mask=columns < n, other=0)[None, :]
            else:
                x = tl.load(ptr)
            values = values + (tl.broadcast_to(convert(x, COMMON).to(OPMATH), [BLOCK_M, BLOCK_N]),)
    result = convert(FUNCTION(*values), out_ptr.dtype.element_ty)
    out_ptr = other_dimensions(out_ptr, rest, shape, strides[OUT], EVEN[OUT], ACROSS)
    down = lanes_apart(rows, strides[OUT][ACROSS], DOWN[OUT], EVEN[OUT])
    along = lanes_apart(columns, strides[OUT][LAST], ALONG[OUT], EVEN[OUT])
    tl.store(out_ptr + (down[:, None] + along[None, :]), result, mask=inside)


def in_tiles(function, *operands, common, out):
    """Compute function(*operands) for each element in `out` and return it.

    Args:
        function: Device function with one value per operand.
        *operands: Tensors that broadcast to `out`, and numbers.
        common: dtype to which operands are converted.
        out: Result tensor.
    """
    shape, strides = coalesce([*[x.expand(out.shape) for x in operands if isinstance(x, torch.Tensor)], out])
    tile = tiling(shape, strides, out.element_size()) if out.numel() >= TINY_TENSOR else None
    if tile is None:
        return elementwise(function, *operands, common=common, out=out)
    across, BLOCK_M, BLOCK_N = tile
    wide = reach(shape, strides) > INT32_MAX
    arguments, steps = [], []
    for x in operands:
        if isinstance(x, torch.Tensor):
            arguments.append(x)
            steps.append(strides.pop(0))
        else:
            arguments.append(number_argument(x, common))
            steps.append(None)
    steps.append(strides.pop(0))
    sizes = shape[across], shape[-1]
    programs = out.numel() // (sizes[0] * sizes[1]) * triton.cdiv(sizes[0], BLOCK_M) * triton.cdiv(sizes[1], BLOCK_N)
    COMMON, OPMATH = compute_types(common)
    tiled_kernel[(programs,)](
        tuple(arguments),
        out,
        tuple([plain(n) for n in shape]),
        tuple([tuple([plain(s) for s in step or ()]) for step in steps]),
        FUNCTION=function,
        DOWN=tuple([None if step is None else min(step[across], 2) for step in steps]),
        ALONG=tuple([None if step is None else min(step[-1], 2) for step in steps]),
        EVEN=(
            *[step is not None and _even(step, (across, len(shape) - 1)) for step in steps],
            *[size % 16 == 0 for size in sizes],
        ),
        COMMON=COMMON,
        OPMATH=OPMATH,
        WIDE=wide,
        ACROSS=across,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=max(min(BLOCK_M * BLOCK_N // 256, 8), 1),
    )
    return out


def tiling(shape, strides, size):
    """Return (dimension along BLOCK_M, BLOCK_M, BLOCK_N) for elements with this many bytes, or None.

    The result is None if tiles would not pay off, or would have too many lanes beyond the ends.
    """
    if len(shape) < 2:
        return None
    inner = [s.index(1) for s in strides if s[-1] > 1 and 1 in s]
    if inner:  # each side covers whole memory lines
        BLOCK_M, BLOCK_N = fullest(shape[inner[0]], (64, 32)), fullest(shape[-1], (64, 32))
        BLOCK_M = BLOCK_M if size < 8 else min(BLOCK_M, 32)
        return (inner[0], BLOCK_M, BLOCK_N) if BLOCK_M * BLOCK_N >= 512 else None
    if all([s[-1] for s in strides]):
        return None
    BLOCK_N = fullest(shape[-1], (1024, 512, 256, 128))
    BLOCK_M = min(triton.next_power_of_2(shape[-2]), max(min(TILE_BYTES // size, 4096) // BLOCK_N, 1))
    return (len(shape) - 2, BLOCK_M, BLOCK_N) if BLOCK_M * BLOCK_N >= 1024 else None


def _even(strides, tiled):
    """Return True if 16 divides all strides except strides 1 in the tile's own dimensions."""
    return all([s % 16 == 0 or (s == 1 and k in tiled) for k, s in enumerate(strides)])


def fullest(n, blocks):
    """Return the block, from a list with the largest first, that pads n elements least.

    A power of two that already holds n is returned if it is smaller.
    """
    return min(triton.next_power_of_2(n), min(blocks, key=lambda block: triton.cdiv(n, block) * block))


def copy_into(out, value):
    """Fill `out` with a tensor's elements, broadcast and converted as by `fill`, and return it."""
    if value.is_floating_point() and out.dtype == torch.uint8:
        return fill(out, value)
    value, bits = as_bits(value, out)
    in_tiles(identity, value, common=bits.dtype, out=bits)
    return out
