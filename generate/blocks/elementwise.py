"""Element by element: operands are broadcast and promoted, results laid out, and one kernel serves every function.

A function is `@triton.jit` and takes one value for each operand, in the type to compute in. A launch takes up to 32
tensors of a list (multi_tensor_apply): `_foreach_` overloads are derived so.
"""

import torch
import triton
import triton.language as tl
from blocks.offsets import coalesce, empty_result, plain, plain_value, reach, stride_hint, strided
from blocks.types import common_dtype, compute_types, convert, float_dtype, number_argument, number_value

HELD = None  # what keeps launches back, to go together: a `Held` of verify/contract/derive.py

__all__ = ["elementwise", "flat_index", "multi_tensor_apply", "pick"]


@triton.jit
def pick(values, firsts):
    """The value of the tensor that this program works on: the last whose first program is not after this one."""
    program = 2 * tl.program_id(0) + 3  # as `plain` has it
    value = values[0]
    for k in tl.static_range(1, len(values)):
        value = tl.where(program >= firsts[k], values[k], value)
    return value


@triton.jit
def flat_index(start, BLOCK: tl.constexpr):
    """A source for `elementwise`: the flat index of each element."""
    return start + tl.arange(0, BLOCK)


@triton.jit
def apply(
    FUNCTION: tl.constexpr,
    values,
    operands,
    outs,
    mask,
    KINDS: tl.constexpr,
    COMMON: tl.constexpr,
    OPMATH: tl.constexpr,
    RESULTS: tl.constexpr,
):
    for k in tl.static_range(len(KINDS)):
        if KINDS[k] == "tensor":
            x = tl.load(operands[k], mask=mask, other=None if mask is None else 0)
            values = values + (convert(x, COMMON).to(OPMATH),)
        elif KINDS[k] == "element":
            values = values + (convert(tl.load(operands[k]), COMMON).to(OPMATH),)
        elif KINDS[k] == "number":
            values = values + (number_value(operands[k], OPMATH),)
        else:
            values = values + (operands[k],)
    results = FUNCTION(*values)
    for k in tl.static_range(len(outs)):
        result = results[RESULTS[k]] if len(RESULTS) > 0 else results
        tl.store(outs[k], convert(result, outs[k].dtype.element_ty), mask=mask)


@triton.jit
def elementwise_kernel(
    operands,
    outs,
    source,
    firsts,
    sizes,
    shape,
    strides,
    FUNCTION: tl.constexpr,
    SOURCE: tl.constexpr,
    KINDS: tl.constexpr,
    HINTS: tl.constexpr,
    COMMON: tl.constexpr,
    OPMATH: tl.constexpr,
    RESULTS: tl.constexpr,
    SMALL: tl.constexpr,
    WIDE: tl.constexpr,
    ROUNDS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """ROUNDS times BLOCK elements of one tensor, which is looked up once. Of each operand, and of each result, one for
    every tensor of the list. RESULTS: of several, those to keep.

    KINDS of operands: a "tensor" with its strides, a tensor of one "element", a "number", a "pointer" that the function
    may store to.
    """
    program = tl.program_id(0) - plain_value(pick(firsts, firsts))
    first = (program.to(tl.int64) if WIDE else program) * (ROUNDS * BLOCK)
    n = plain_value(pick(sizes, firsts))
    own, targets = (), ()
    for k in tl.static_range(len(KINDS)):
        own = own + (pick(operands[k], firsts),)
    for k in tl.static_range(len(outs)):
        targets = targets + (pick(outs[k], firsts),)
    for at in range(0, ROUNDS * BLOCK, BLOCK):
        start = first + at
        values = ()
        if SOURCE is not None:
            arguments = ()
            for k in tl.static_range(len(source)):
                arguments = arguments + (number_value(source[k], tl.int64),)
            values = values + (SOURCE(start, BLOCK, *arguments),)
        i = start + tl.arange(0, BLOCK)
        reads = ()
        for k in tl.static_range(len(KINDS)):
            if KINDS[k] == "tensor":
                reads = reads + (own[k] + strided(i, shape, strides[k], HINTS[k]),)
            else:
                reads = reads + (own[k],)
        writes = ()
        for k in tl.static_range(len(outs)):
            writes = writes + (targets[k] + strided(i, shape, strides[len(KINDS) + k], HINTS[len(KINDS) + k]),)
        if SMALL:  # soon compiled
            apply(FUNCTION, values, reads, writes, i < n, KINDS, COMMON, OPMATH, RESULTS)
        elif start + BLOCK <= n:
            apply(FUNCTION, values, reads, writes, None, KINDS, COMMON, OPMATH, RESULTS)
        else:
            apply(FUNCTION, values, reads, writes, i < n, KINDS, COMMON, OPMATH, RESULTS)


def elementwise(function, *operands, numbers=(), source=None, common=None, dtype=None, to_float=False, out=None):
    """function(*operands, *numbers) of each element, in `out` or in new tensors.

    operands: tensors, which are broadcast, and Python numbers, which are promoted with them to the common dtype.
    numbers: further arguments that have no say in that. source: (f, *integers) gives the function one more argument,
    its first: f(start, BLOCK, *integers), of the elements from `start` on in the order in which results lie in memory.
    to_float: integers are promoted to the default floating-point dtype. dtype: of a new result, by default the common
    one; where the function returns several values, a dtype for each, and `out` is a tuple, None for what is not kept.
    """
    entry = entry_of(function, operands, numbers, source, common, dtype, to_float, out)
    if HELD is None or not HELD.append(entry):
        launch_elementwise([entry])
    return tuple(entry[3]) if isinstance(dtype, tuple) or isinstance(out, tuple) else entry[3][0]


def entry_of(
    function, operands, numbers=(), source=None, common=None, dtype=None, to_float=False, out=None, pointers=()
):
    """What `launch_elementwise` takes, for the arguments of `elementwise`."""
    common = common_dtype(*operands) if common is None else common
    common = float_dtype(common) if to_float else common
    tensors = [x for x in operands if isinstance(x, torch.Tensor)]
    if out is None:
        if any([t.shape != tensors[0].shape for t in tensors]):
            tensors = list(torch.broadcast_tensors(*tensors))
        outs = [empty_result(tensors, d) for d in (dtype if isinstance(dtype, tuple) else (dtype or common,))]
    else:
        outs = [t for t in out if t is not None] if isinstance(out, tuple) else [out]
        tensors = [t if t.shape == outs[0].shape else t.expand(outs[0].shape) for t in tensors]
    results = range(len(outs)) if isinstance(dtype, tuple) else ()
    if isinstance(out, tuple):
        results = [k for k, t in enumerate(out) if t is not None]
    kinds, arguments = [], []
    for x in (*operands, *numbers):
        if isinstance(x, torch.Tensor):
            t = tensors.pop(0)
            one = x.dim() == 0 and outs[0].dim() > 0
            kinds.append("element" if one else "tensor")
            arguments.append(x if one else t)
        else:
            kinds.append("number")
            arguments.append(number_argument(x, common))
    given = None if source is None else (source[0], *[number_argument(x, torch.int64) for x in source[1:]])
    kinds += ["pointer"] * len(pointers)
    return function, tuple(kinds), [*arguments, *pointers], outs, tuple(results), given, common


def multi_tensor_apply(function, operands, outs, pointers=()):
    """function(*operands, *pointers) of each element of lists of tensors, in fp32, or in fp64 for float64, into `outs`.

    operands: lists, and what all of a list share: tensors of one element, numbers. outs: lists, or None for what
    is not kept. pointers: tensors to which the function itself stores.
    """
    operands = [x.view(()) if isinstance(x, torch.Tensor) else x for x in operands]
    entries = []
    for k, first in enumerate(outs[0]):
        own = [x[k] if isinstance(x, (list, tuple)) else x for x in operands]
        out = tuple([None if x is None else x[k] if x[k].dim() else x[k].view(1) for x in outs])
        common = torch.float64 if first.dtype == torch.float64 else torch.float32
        out = out if len(out) > 1 else out[0]
        entries.append(entry_of(function, own, common=common, out=out, pointers=pointers))
    launch_elementwise(entries)


def launch_elementwise(entries):
    """Launch these: what is alike and lies dense in lists of up to 32 tensors, all else alone."""
    alike = {}
    for function, kinds, operands, outs, results, source, common in entries:
        tensors = [x for x, kind in zip(operands, kinds, strict=True) if kind == "tensor"]
        shape, strides = coalesce(tensors + outs)
        if outs[0].numel():
            dtypes = [x.dtype for x in [*operands, *outs] if isinstance(x, torch.Tensor)]
            how = function, kinds, common, results, source
            key = how, tuple(dtypes), len(outs), tuple(strides), len(alike) if shape else -1
            alike[key] = [*alike.get(key, []), (operands, outs, shape, strides)]
    for (how, *_), members in alike.items():
        for at in range(0, len(members), 32):
            _launch(members[at : at + 32], *how)


def _shared(values):
    """A tuple of these; of what is the same for every tensor of the list one is enough, since `pick` takes time."""
    return (values[0],) if all([v is values[0] for v in values]) else tuple(values)


def _launch(members, function, kinds, common, results, source):
    """One launch. members: (operands, outs, shape, strides of each tensor); of several none has a shape."""
    operands, outs, shape, strides = members[0]
    sizes = [member[1][0].numel() for member in members]
    double = common.is_floating_point and common.itemsize == 8
    BLOCK, warps = 1024 if double else 2048, 8  # four or eight elements a thread, as registers allow
    small = max(sizes) < 4096
    if small:
        BLOCK, warps = 512, 4
    count = len(members)
    # in a list tensors take time to be looked up: four programs for 132 processors each are enough
    rounds = 4 if count > 1 and not small and sum(sizes) >= 4 * BLOCK * 528 else 1
    firsts, programs = [], 0
    for n in sizes:
        firsts.append(plain(programs))
        programs += triton.cdiv(n, rounds * BLOCK)
    lacking = (1 if count == 1 else 8 if count <= 8 else 32) - count  # few variants count for more than the padding
    members = members + members[-1:] * lacking
    firsts += [plain(programs)] * lacking
    sizes += sizes[-1:] * lacking
    wide = max(sizes) > 2147483647 - 2 * rounds * BLOCK or reach(shape, strides) > 2147483647
    if small and count == 1 and len(shape) < 4:  # few variants count for more than few divisions
        shape = shape or (sizes[0],)
        lacking = 4 - len(shape)
        shape, strides = (1,) * lacking + shape, [(0,) * lacking + s for s in strides]
        hints = [0] * len(strides)
    else:
        hints = [stride_hint(shape, s, sizes[0] >= 4096) for s in strides]
    ranks = [kinds[:k].count("tensor") for k in range(len(kinds))]
    inputs = [(strides[r], hints[r]) if kind == "tensor" else ((), 0) for r, kind in zip(ranks, kinds, strict=True)]
    steps = inputs + list(zip(strides, hints, strict=True))[kinds.count("tensor") :]
    COMMON, OPMATH = compute_types(common)
    elementwise_kernel[(programs,)](
        tuple([_shared([m[0][k] for m in members]) for k in range(len(operands))]),
        tuple([tuple([m[1][k] for m in members]) for k in range(len(outs))]),
        () if source is None else source[1:],
        tuple(firsts),
        tuple([plain(n) for n in sizes]),
        tuple([plain(n) for n in shape]),
        tuple([tuple([plain(s) for s in stride]) if shape else () for stride, _ in steps]),
        FUNCTION=function,
        SOURCE=None if source is None else source[0],
        KINDS=kinds,
        HINTS=tuple([hint for _, hint in steps]),
        COMMON=COMMON,
        OPMATH=OPMATH,
        RESULTS=results,
        SMALL=small,
        WIDE=wide,
        ROUNDS=rounds,
        BLOCK=BLOCK,
        num_warps=warps,
    )
