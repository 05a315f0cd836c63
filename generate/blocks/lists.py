"""Reduction of each tensor in a list to one value, up to 64 tensors in two launches.

The first launch folds every 16,384 elements into one value. The second folds each tensor's values in a fixed
order, so results are reproducible. A tensor that is not dense is launched alone, with its strides.
"""

import torch
import triton
import triton.language as tl
from blocks.combination import combined, folded, neutral
from blocks.elementwise import pick
from blocks.offsets import coalesce, plain, plain_value, strided
from blocks.types import compute_types, convert, number_argument, number_value

LISTED_TENSORS = 64  # most tensors per launch
LIST_SPAN = 16384  # elements that a program folds into one value, in four steps


@triton.jit
def number_values(numbers, OPMATH: tl.constexpr):
    values = ()
    for k in tl.static_range(len(numbers)):
        values = values + (number_value(numbers[k], OPMATH),)
    return values


@triton.jit
def list_parts_kernel(
    xs,
    parts_ptr,
    numbers,
    firsts,
    sizes,
    shape,
    stride,
    KIND: tl.constexpr,
    MAP: tl.constexpr,
    OPMATH: tl.constexpr,
    UNIT: tl.constexpr,
    BLOCK: tl.constexpr,
    SPAN: tl.constexpr,
):
    """Fold SPAN elements in one tensor into one value per program.

    Args:
        xs: Tuple of pointers, one for each tensor, read.
        parts_ptr: [programs], written: one value per program.
        numbers: Arguments for MAP, encoded by `number_argument`.
        firsts: First program of each tensor, encoded by `plain`, see `pick`.
        sizes: Element count of each tensor, encoded by `plain`.
        shape: Shape that all tensors share, for `strided`; () if they are dense.
        stride: Strides that all tensors share, in elements, encoded by `plain`; () if they are dense.
        KIND: Combination in blocks/combination.py.
        MAP: Triton function map(x, *numbers) that makes a value from each element.
        OPMATH: Type to compute in.
        UNIT: True if the innermost stride is 1.
        BLOCK: Elements per step.
        SPAN: Elements per program.
    """
    first = (tl.program_id(0) - plain_value(pick(firsts, firsts))).to(tl.int64) * SPAN
    n = plain_value(pick(sizes, firsts))
    x_ptr = pick(xs, firsts)
    arguments = number_values(numbers, OPMATH)
    none = neutral((tl.zeros([1, BLOCK], parts_ptr.dtype.element_ty),), KIND, float("-inf"), float("inf"))
    acc = none
    for start in range(first, tl.minimum(first + SPAN, n), BLOCK):
        i = start + tl.arange(0, BLOCK).to(tl.int64)[None, :]
        at_ptr = x_ptr + strided(i, shape, stride, UNIT)
        x = tl.load(at_ptr) if start + BLOCK <= n else tl.load(at_ptr, mask=i < n, other=0)
        value = MAP(x.to(OPMATH), *arguments)
        acc = combined(acc, (tl.where(i < n, value, none[0]),), KIND)
    tl.store(parts_ptr + tl.program_id(0) + tl.arange(0, 1), folded(acc, KIND)[0])


@triton.jit
def list_results_kernel(
    parts_ptr,
    outs,
    numbers,
    firsts,
    sizes,
    KIND: tl.constexpr,
    FINISH: tl.constexpr,
    OPMATH: tl.constexpr,
    SPAN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Fold one tensor's parts and store its result.

    Args:
        parts_ptr: [programs], values from `list_parts_kernel`, read.
        outs: Tuple of pointers to results without dimensions, written.
        numbers: Further arguments for FINISH, encoded by `number_argument`.
        firsts: First part of each tensor, encoded by `plain`.
        sizes: Element count of each tensor, encoded by `plain`.
        KIND: Combination in blocks/combination.py.
        FINISH: Triton function finish(value, count, *numbers) that makes the result.
        OPMATH: Type of the numbers.
        SPAN: Elements of a tensor per part.
        BLOCK: Parts per step.
    """
    # One program per tensor: its number is the tensor's, so comparing replaces `pick`.
    out_ptr, first, size = outs[0], firsts[0], sizes[0]
    for k in tl.static_range(1, len(outs)):
        reached = tl.program_id(0) >= k
        out_ptr = tl.where(reached, outs[k], out_ptr)
        first = tl.where(reached, firsts[k], first)
        size = tl.where(reached, sizes[k], size)
    n = tl.cdiv(plain_value(size), SPAN)
    none = neutral((tl.zeros([1, BLOCK], parts_ptr.dtype.element_ty),), KIND, float("-inf"), float("inf"))
    acc = none
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)[None, :]
        part = tl.load(parts_ptr + plain_value(first) + i, mask=i < n, other=0)
        acc = combined(acc, (tl.where(i < n, part, none[0]),), KIND)
    result = FINISH(*folded(acc, KIND), plain_value(size), *number_values(numbers, OPMATH))
    tl.store(out_ptr + tl.arange(0, 1), convert(result, out_ptr.dtype.element_ty))


def reduce_list(kind, tensors, *, map, finish, numbers=(), dtype=None, value=torch.float32):
    """Return finish(value, count, *numbers) for each tensor, in new tensors without dimensions.

    Args:
        kind: Combination in blocks/combination.py with a single value.
        tensors: Tensors to reduce.
        map: Device function map(x, *numbers) that makes a value from each element, in fp32, or in fp64 if the
            tensor or the result is float64.
        finish: Device function that makes the result from the combined value.
        numbers: Further arguments for `map` and `finish`.
        dtype: Result dtype; the tensor's own if None.
        value: dtype for the combined values, unless they are fp64.
    """
    outs = [torch.empty((), dtype=dtype or x.dtype, device=x.device) for x in tensors]
    groups = {}
    for k, x in enumerate(tensors):
        shape, (stride,) = coalesce([x])
        key = x.dtype, outs[k].dtype, stride, len(groups) if shape else -1
        groups[key] = [*groups.get(key, []), (x, outs[k], shape, stride)]
    for members in [
        groups[key][at : at + LISTED_TENSORS] for key in groups for at in range(0, len(groups[key]), LISTED_TENSORS)
    ]:
        _launch_list(kind, map, finish, numbers, value, members)
    return outs


def _launch_list(kind, map, finish, numbers, value, members):
    """Launch both kernels for up to 64 members (tensor, result, shape, stride).

    The last member is repeated until there are 1, 8, 16, 32 or 64, so that few kernel variants are compiled.
    """
    x, out, shape, stride = members[0]
    wide = torch.float64 in (x.dtype, out.dtype)
    count = len(members)
    members = members + members[-1:] * (max(triton.next_power_of_2(count), 8) - count if count > 1 else 0)
    firsts, programs = [], 0
    for k, member in enumerate(members):
        firsts.append(plain(programs))
        programs += (member[0].numel() + LIST_SPAN - 1) // LIST_SPAN if k < count else 0
    sizes = tuple([plain(member[0].numel()) for member in members])
    dtype = torch.float64 if wide else x.dtype
    OPMATH = compute_types(dtype)[1]
    arguments = tuple([number_argument(v, dtype) for v in numbers])
    parts = torch.empty(programs, dtype=torch.float64 if wide else value, device=x.device)
    list_parts_kernel[(programs,)](
        tuple([member[0] for member in members]),
        parts,
        arguments,
        tuple(firsts),
        sizes,
        tuple([plain(n) for n in shape]),
        tuple([plain(s) for s in stride]) if shape else (),
        KIND=kind,
        MAP=map,
        OPMATH=OPMATH,
        UNIT=stride[-1] == 1,
        BLOCK=4096,
        SPAN=LIST_SPAN,
        num_warps=8,
    )
    list_results_kernel[(count,)](
        parts,
        tuple([member[1] for member in members]),
        arguments,
        tuple(firsts),
        sizes,
        KIND=kind,
        FINISH=finish,
        OPMATH=OPMATH,
        SPAN=LIST_SPAN,
        BLOCK=1024,
        num_warps=4,
    )
