"""Element-wise operations: one kernel serves every function.

Operands are broadcast and promoted, and results get ATen's layout. A function is `@triton.jit` and takes one
value per operand, in the compute type. A launch handles up to 32 tensors of a list (multi_tensor_apply), from
which the `_foreach_` overloads are derived.
"""

import torch
import triton
import triton.language as tl
from blocks.limits import INT32_MAX, PROCESSORS
from blocks.offsets import coalesce, empty_result, plain, plain_value, reach, stride_hint, strided
from blocks.types import common_dtype, compute_types, convert, float_dtype, number_argument, number_value

SHORT_LAUNCH = 4096  # elements below which one general kernel variant pays off: compiling takes longer than running

# `pick` compares with every tensor of the list, so a longer list costs each program instance more time.
TENSORS_PER_LAUNCH = 32

HELD = None  # collects launches to batch them: a `Held` from verify/contract/derive.py, or None

__all__ = ["elementwise", "flat_index", "multi_tensor_apply", "pick"]


@triton.jit
def pick(values, firsts):
    """Return the value for the tensor that this program instance works on.

    That is the last tensor whose first program instance is not after this one.
    """
    program = 2 * tl.program_id(0) + 3  # encoded as by `plain`, like firsts
    value = values[0]
    for k in tl.static_range(1, len(values)):
        value = tl.where(program >= firsts[k], values[k], value)
    return value


@triton.jit
def flat_index(start, BLOCK: tl.constexpr):
    """Return the flat index of each element, as a source for `elementwise`."""
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
    """Load the operands, call FUNCTION, and store its results."""
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
        value = results[RESULTS[k]] if len(RESULTS) > 0 else results
        tl.store(outs[k], convert(value, outs[k].dtype.element_ty), mask=mask)


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
    """Compute ROUNDS * BLOCK elements of one tensor, which is looked up once.

    Args:
        operands: For each operand, a tuple with a pointer (read) or an encoded number per list tensor, or a
            single shared one.
        outs: For each result, a tuple with a pointer per list tensor, written.
        source: Integer arguments for SOURCE, encoded by `number_argument`; () without SOURCE.
        firsts: First program instance of each list tensor, encoded by `plain`.
        sizes: Element count of each list tensor, encoded by `plain`.
        shape: Common shape, encoded by `plain`; () if all tensors are dense.
        strides: Strides of each operand and then of each result, in elements, encoded by `plain`; () if dense.
        FUNCTION: Triton function of the source's value and the operands.
        SOURCE: Triton function (start, BLOCK, *source) for FUNCTION's first argument, or None.
        KINDS: Kind of each operand: "tensor" with strides, "element" (one-element tensor), "number", or
            "pointer" to which the function may store.
        HINTS: `stride_hint` for each operand and result.
        COMMON: Type to which the operands are promoted.
        OPMATH: Type to compute in.
        RESULTS: For each entry of `outs`, the index of the function's result; () if the function has a single
            result.
        SMALL: True to use the mask for all blocks, which compiles faster.
        WIDE: True to use 64-bit offsets.
        ROUNDS: Blocks per program instance.
        BLOCK: Elements per block.
    """
    program = tl.program_id(0) - plain_value(pick(firsts, firsts))
    first = (program.to(tl.int64) if WIDE else program) * (ROUNDS * BLOCK)
    n = plain_value(pick(sizes, firsts))
    pointers, targets = (), ()
    for k in tl.static_range(len(KINDS)):
        pointers = pointers + (pick(operands[k], firsts),)
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
                reads = reads + (pointers[k] + strided(i, shape, strides[k], HINTS[k]),)
            else:
                reads = reads + (pointers[k],)
        writes = ()
        for k in tl.static_range(len(outs)):
            writes = writes + (targets[k] + strided(i, shape, strides[len(KINDS) + k], HINTS[len(KINDS) + k]),)
        if SMALL:  # one branch compiles faster
            apply(FUNCTION, values, reads, writes, i < n, KINDS, COMMON, OPMATH, RESULTS)
        elif start + BLOCK <= n:
            apply(FUNCTION, values, reads, writes, None, KINDS, COMMON, OPMATH, RESULTS)
        else:
            apply(FUNCTION, values, reads, writes, i < n, KINDS, COMMON, OPMATH, RESULTS)


def elementwise(function, *operands, numbers=(), source=None, common=None, dtype=None, to_float=False, out=None):
    """Compute function(*operands, *numbers) element by element, in `out` or in new tensors.

    Args:
        function: Triton function, called with values in the compute type.
        *operands: Tensors, which are broadcast, and Python numbers. All take part in type promotion.
        numbers: Further arguments, which do not take part in type promotion.
        source: (f, *integers) adds a first argument f(start, BLOCK, *integers), for the elements from `start`
            on in the memory order of the results.
        common: Dtype to promote to, by default the operands' common dtype.
        dtype: Dtype of a new result, by default the common one. A function with several results takes a tuple
            of dtypes.
        to_float: Promote integers to the default floating-point dtype.
        out: Result tensor, or a tuple for several results, with None for those that are dropped.

    Returns:
        The result, or a tuple of results.
    """
    entry = entry_of(function, operands, numbers, source, common, dtype, to_float, out)
    if HELD is None or not HELD.append(entry):
        launch_elementwise([entry])
    return tuple(entry[3]) if isinstance(dtype, tuple) or isinstance(out, tuple) else entry[3][0]


def entry_of(
    function, operands, numbers=(), source=None, common=None, dtype=None, to_float=False, out=None, pointers=()
):
    """Return the launch entry for `launch_elementwise` from the arguments of `elementwise`."""
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
            is_element = x.dim() == 0 and outs[0].dim() > 0
            kinds.append("element" if is_element else "tensor")
            arguments.append(x if is_element else t)
        else:
            kinds.append("number")
            arguments.append(number_argument(x, common))
    source_argument = None if source is None else (source[0], *[number_argument(x, torch.int64) for x in source[1:]])
    kinds += ["pointer"] * len(pointers)
    return function, tuple(kinds), [*arguments, *pointers], outs, tuple(results), source_argument, common


def multi_tensor_apply(function, operands, outs, pointers=()):
    """Compute function(*operands, *pointers) for each element of tensor lists, into `outs`.

    The compute type is fp32, or fp64 for float64.

    Args:
        function: Triton function.
        operands: Tensor lists, or values that all list tensors share (one-element tensors, numbers).
        outs: Tensor lists, or None for dropped results.
        pointers: Tensors to which the function itself stores.
    """
    operands = [x.view(()) if isinstance(x, torch.Tensor) else x for x in operands]
    entries = []
    for k, first in enumerate(outs[0]):
        tensor_operands = [x[k] if isinstance(x, (list, tuple)) else x for x in operands]
        out = tuple([None if x is None else x[k] if x[k].dim() else x[k].view(1) for x in outs])
        common = torch.float64 if first.dtype == torch.float64 else torch.float32
        out = out if len(out) > 1 else out[0]
        entries.append(entry_of(function, tensor_operands, common=common, out=out, pointers=pointers))
    launch_elementwise(entries)


def launch_elementwise(entries):
    """Launch these entries: equal dense ones together in lists of up to 32 tensors, all others alone."""
    groups = {}
    for function, kinds, operands, outs, results, source, common in entries:
        tensors = [x for x, kind in zip(operands, kinds, strict=True) if kind == "tensor"]
        shape, strides = coalesce(tensors + outs)
        if outs[0].numel():
            dtypes = [x.dtype for x in [*operands, *outs] if isinstance(x, torch.Tensor)]
            settings = function, kinds, common, results, source
            key = settings, tuple(dtypes), len(outs), tuple(strides), len(groups) if shape else -1
            groups[key] = [*groups.get(key, []), (operands, outs, shape, strides)]
    for (settings, *_), members in groups.items():
        for at in range(0, len(members), TENSORS_PER_LAUNCH):
            _launch(members[at : at + TENSORS_PER_LAUNCH], *settings)


def _shared(values):
    """Return the values as a tuple, reduced to one if all tensors share it, because `pick` takes time."""
    return (values[0],) if all([v is values[0] for v in values]) else tuple(values)


def _launch(members, function, kinds, common, results, source):
    """Launch one kernel for up to 32 tensors.

    Each member is (operands, outs, shape, each tensor's strides). Several members must be dense (no shape).
    """
    operands, outs, shape, strides = members[0]
    sizes = [member[1][0].numel() for member in members]
    double = common.is_floating_point and common.itemsize == 8
    BLOCK, warps = 1024 if double else 2048, 8  # four or eight elements a thread, as registers allow
    small = max(sizes) < SHORT_LAUNCH
    if small:
        BLOCK, warps = 512, 4
    count = len(members)
    # looking tensors up in a list takes time, so a program instance does four blocks if processors stay busy
    rounds = 4 if count > 1 and not small and sum(sizes) >= 4 * BLOCK * (4 * PROCESSORS) else 1
    firsts, programs = [], 0
    for n in sizes:
        firsts.append(plain(programs))
        programs += triton.cdiv(n, rounds * BLOCK)
    # fewer kernel variants are worth the padding
    missing = (1 if count == 1 else 8 if count <= 8 else TENSORS_PER_LAUNCH) - count
    members = members + members[-1:] * missing
    firsts += [plain(programs)] * missing
    sizes += sizes[-1:] * missing
    # The margin covers masked lanes: the last program instance counts on beyond the last element.
    wide = max(sizes) > INT32_MAX - 2 * rounds * BLOCK or reach(shape, strides) > INT32_MAX
    if small and count == 1 and len(shape) < 4:  # fewer kernel variants are worth the divisions
        shape = shape or (sizes[0],)
        missing = 4 - len(shape)
        shape, strides = (1,) * missing + shape, [(0,) * missing + s for s in strides]
        hints = [0] * len(strides)
    else:
        hints = [stride_hint(shape, s, sizes[0] >= SHORT_LAUNCH) for s in strides]
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
