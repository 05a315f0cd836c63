"""Lists of tensors: each is reduced to one value, up to 64 of them in two launches.

The first folds every 16,384 elements into one value, the second the values of each tensor, in a fixed order, so that
results are reproducible. A tensor that does not lie dense is launched alone, with its strides.
"""

import torch
import triton
import triton.language as tl
from blocks.combination import combined, folded, neutral
from blocks.elementwise import pick
from blocks.offsets import coalesce, plain, plain_value, strided
from blocks.types import compute_types, convert, number_argument, number_value


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
    out_ptr, first, size = outs[0], firsts[0], sizes[0]
    for k in tl.static_range(1, len(outs)):
        own = tl.program_id(0) >= k
        out_ptr = tl.where(own, outs[k], out_ptr)
        first = tl.where(own, firsts[k], first)
        size = tl.where(own, sizes[k], size)
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
    """finish(found, count, *numbers) for each tensor, in new tensors without dimensions of this dtype, or else its own.

    kind: of blocks/reduction.py, one of a single value. map(x, *numbers) makes that value of each element, in fp32 or,
    where tensors or results are float64, in fp64; `value` is its dtype, if not that.
    """
    outs = [torch.empty((), dtype=dtype or x.dtype, device=x.device) for x in tensors]
    alike = {}
    for k, x in enumerate(tensors):
        shape, (stride,) = coalesce([x])
        key = x.dtype, outs[k].dtype, stride, len(alike) if shape else -1
        alike[key] = [*alike.get(key, []), (x, outs[k], shape, stride)]
    for members in [alike[key][at : at + 64] for key in alike for at in range(0, len(alike[key]), 64)]:
        _launch_list(kind, map, finish, numbers, value, members)
    return outs


def _launch_list(kind, map, finish, numbers, value, members):
    """members: (tensor, result, shape, stride); the last is repeated so that there are 1, 8, 16, 32 or 64."""
    x, out, shape, stride = members[0]
    wide = torch.float64 in (x.dtype, out.dtype)
    count = len(members)
    members = members + members[-1:] * (max(triton.next_power_of_2(count), 8) - count if count > 1 else 0)
    firsts, programs = [], 0
    for k, member in enumerate(members):
        firsts.append(plain(programs))
        programs += (member[0].numel() + 16383) // 16384 if k < count else 0
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
        SPAN=16384,
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
        SPAN=16384,
        BLOCK=1024,
        num_warps=4,
    )
