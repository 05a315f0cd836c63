"""Trial of a call with ATen: find out if its answer depends on nothing but its arguments.

ATen trusts its callers. With mismatched sizes some operators read or write beyond their arguments, or crash the
process. Therefore this code runs in a child (verify/cases/oracle.py).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryFile
from typing import Any

import torch

from traces.overloads import bind, call, kind, resolve, written
from traces.subgraphs import define_all
from traces.values import Packed, Rebuilt, TensorRef, by_storage, unpack
from verify.cases import references
from verify.cases.arguments import LAST, Arguments, fits, tensors
from verify.cases.case import aten_answer
from verify.cases.packed import holds_sparse, same_bits
from verify.cases.soundness import ERRORS, is_sound
from verify.child.serve import stderr_to
from verify.contract.random_state import Philox
from verify.operators import elementwise

MARGIN = 4096  # bytes on either side of an argument, in addition to four times the largest argument
MAX_MARGIN = 1 << 20
_WIDER = dict.fromkeys((torch.float16, torch.bfloat16, torch.float32), torch.float64)
_FILLERS = (0xFF, 0x41)  # contents of the margins: NaN, and 12 as float32; -1, and a large integer
_M_PERTURB = -6  # from <malloc.h>
_BLOCKS = 16  # blocks per size that ATen may allocate


class Trial:
    """Runner that a child executes instead of a kernel."""

    lost = False

    def __init__(self, job: dict[str, Any], mode: str) -> None:
        """Ignore both arguments of the child.serve.Runner protocol, because neither is needed."""

    def run(self, header: dict[str, Any], packed: Packed) -> tuple[dict[str, Any], Packed]:
        """Try the call, and reply if it has a sound answer and which requested places do not affect it.

        If the request contains a random state (`philox`), reply with ATen's answer instead.
        """
        overload, places = header["overload"], header.get("places", ())
        define_all(header.get("subgraphs", []))
        if "philox" in header:
            return _answered(overload, packed, tuple(header["philox"]))
        with torch.no_grad():
            is_sound = has_answer(overload, packed)
            idle_indices = idle_places(overload, packed, places) if is_sound and places else []
        return {"status": "ok", "stands": is_sound, "idle": idle_indices}, Packed({})


def _answered(overload: str, packed: Packed, philox: Philox) -> tuple[dict[str, Any], Packed]:
    try:
        return {"status": "ok", "error": ""}, aten_answer(overload, packed, philox)
    except ERRORS as error:
        return {"status": "ok", "error": str(error)}, Packed({})


def has_answer(overload: str, packed: Packed) -> bool:
    """Return True if ATen gives the same answer for any memory around the arguments and any layout of them.

    The call also fails if a result is too large for Triton's interpreter, if finite arguments give infinite
    results, or if NaN or infinities become integers.
    """
    if not is_sound(overload, unpack(packed)):
        return False
    with TemporaryFile() as stderr_file, stderr_to(stderr_file):
        answers = [_surrounded_answer(overload, packed, filler) for filler in _FILLERS]
        stderr_file.seek(0)
        deprecated = b"deprecated" in stderr_file.read()
    if answers[0] is None or answers[1] is None or deprecated:
        return False  # for example losses with mismatched sizes: ATen warns, and averages over the first few elements
    results = answers[0]
    draws = kind(resolve(overload)) == "random"
    if not draws and not all(map(_same, results, answers[1])):
        return False
    whole = _with_every_gradient(packed)
    if whole is not None and _reads_beside(overload, whole):
        return False
    if not draws and not holds_sparse(packed.tree) and not _same_in_other_layouts(overload, packed, results):
        return False
    return all(fits(overload, r.shape) for r in results) and not _overflows(overload, tensors(unpack(packed)), results)


def _with_every_gradient(packed: Packed) -> Packed | None:
    """Return the call with all gradients requested, or None if its mask already requests all.

    The arguments of a call do not depend on the requested gradients, so they have to be valid with all of them.
    """
    mask = packed.tree.get("output_mask")
    if not mask or all(mask):
        return None
    return replace(packed, tree={**packed.tree, "output_mask": [True] * len(mask)})


def _reads_beside(overload: str, packed: Packed) -> bool:
    """Return True if ATen's answer depends on the memory around the arguments."""
    one, other = (_surrounded_answer(overload, packed, filler) for filler in _FILLERS)
    return one is not None and other is not None and not all(map(_same, one, other))


def idle_places(overload: str, packed: Packed, places: Sequence[tuple[str, int | None, int]]) -> list[int]:
    """Return the indices of the places whose elements do not affect the answer.

    A place is a dimension in an argument or in a list item, and stands for the last elements along it. LAST is
    the single element at the end of all dimensions.

    Elements are idle if they lie beyond a size that the operator takes from another argument. An operator that
    treats memory as a flat row, regardless of shape, ignores the end of a row that is too long.
    """
    dtypes: Mapping[torch.dtype, torch.dtype] = _WIDER  # wider dtypes, in which a small effect is not rounded away
    before = _answer(overload, _apart(packed, dtypes))
    if before is None:
        dtypes = {}
        before = _answer(overload, _apart(packed, dtypes))
    if before is None:
        return []
    return [i for i, site in enumerate(places) if _is_idle(overload, lambda: _apart(packed, dtypes), before, site)]


def _apart(packed: Packed, dtypes: Mapping[torch.dtype, torch.dtype]) -> Arguments:
    """Return the arguments with each tensor copied to its own memory."""
    copied = lambda t: t.to(dtypes.get(t.dtype, t.dtype)).clone(memory_format=torch.contiguous_format)  # noqa: E731
    return {name: _changed(value, copied) for name, value in unpack(packed).items()}


def _is_idle(
    overload: str, fresh: Callable[[], Arguments], before: list[torch.Tensor], site: tuple[str, int | None, int]
) -> bool:
    """Return True if every replacement of the elements at the place leaves all results unchanged.

    Replacements that ATen refuses are skipped, but it has to accept at least one.
    """
    name, item, dim = site
    answered = False
    for other in _OTHERS:
        arguments = fresh()
        tensor = arguments[name] if item is None else arguments[name][item]
        first, last = (_elements(tensor, dim, at) for at in (0, -1))
        original = last.clone()
        replacement = last.copy_(other(last, first)).clone()
        after = _answer(overload, arguments)
        if name in written(resolve(overload)) and _same(last, replacement):
            last.copy_(original)  # restore an argument that the call writes, but not at these elements
        if after is not None and not all(map(_same, before, after)):
            return False
        answered |= after is not None
    return answered


def _elements(t: torch.Tensor, dim: int, at: int) -> torch.Tensor:
    """Return the elements at one index along a dimension, or along every dimension."""
    return t[(at,) * t.dim()] if dim == LAST else t.select(dim, at)


def _unlike(last: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
    """Return different elements.

    Floats become arbitrary other numbers, bools are inverted, and indices become the first ones, which are
    valid.
    """
    if last.is_floating_point() or last.is_complex():
        return 1.375 - last
    return ~last if last.dtype is torch.bool else first


def _beyond(sign: int) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return a function that gives elements beyond all others: much larger or much smaller floats."""
    return lambda last, first: last + sign * 1000 if last.is_floating_point() else _unlike(last, first)


# The second replacement suits operators that require numbers from 0 to 1; the others suit maxima and minima.
_OTHERS = (_unlike, lambda last, first: last / 2, _beyond(1), _beyond(-1))


def _surrounded_answer(overload: str, packed: Packed, filler: int) -> list[torch.Tensor] | None:
    """Return the results with margins that contain `filler` around the arguments.

    Return None if ATen refuses the call or writes into a margin.
    """
    largest = max((group.nbytes for group in packed.groups), default=0)  # with mismatched sizes ATen may read this far
    margin = min(MARGIN + (4 * largest + 127) // 128 * 128, MAX_MARGIN)
    # Operators on storages know the end of a storage.
    margins = [0 if by_storage(packed.tree) else margin for _ in packed.groups]
    wide = replace(
        packed,
        groups=[replace(g, nbytes=g.nbytes + 2 * m) for g, m in zip(packed.groups, margins, strict=True)],
        tensors=[_moved(ref, margins[ref.group]) for ref in packed.tensors],
        data=[
            None if d is None else b"".join((bytes([filler]) * m, d, bytes([filler]) * m))
            for d, m in zip(packed.data, margins, strict=True)
        ],
    )
    memory: list[Rebuilt] = []
    arguments = unpack(wide, memory=memory)
    before = [(t, t._version) for t in tensors(arguments) if not t.is_sparse]
    neighbours = _neighbours(packed, filler)
    with _fresh_memory(filler):
        results = _answer(overload, arguments)
    del neighbours
    if results is None or any(t._version != version and 0 in t.stride() for t, version in before):
        return None  # several elements with one address were written, as batch_norm does contrary to its schema
    return results if all(_intact(m, margin, filler) for m, margin in zip(memory, margins, strict=True)) else None


@contextmanager
def _fresh_memory(byte: int) -> Iterator[None]:
    """Fill fresh memory within the block, so that reads from it become visible.

    glibc fills allocations with the byte's complement. For one of the two fillers, PyTorch also fills new
    results with NaN. With mismatched sizes some operators write beyond their results, and read there. Some
    return a result that they did not write, such as multi_margin_loss without rows.
    """
    # Other C libraries do not have it.
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) or (lambda option, value: 0)
    mallopt(_M_PERTURB, byte)
    deterministic: Any = torch.utils.deterministic
    fills_memory = deterministic.fill_uninitialized_memory
    deterministic.fill_uninitialized_memory = fills_memory and byte == _FILLERS[0]
    try:
        yield
    finally:
        deterministic.fill_uninitialized_memory = fills_memory
        mallopt(_M_PERTURB, 0)


def _neighbours(packed: Packed, filler: int) -> list[torch.Tensor]:
    """Return filled blocks in the sizes of the arguments, with holes between them.

    ATen's contiguous copies of the arguments are then allocated in these holes.
    """
    sizes = {group.nbytes for group in packed.groups}
    sizes |= {math.prod(ref.shape) * getattr(torch, ref.dtype).itemsize for ref in packed.tensors}
    wanted = sorted(size for size in sizes if 0 < size <= MAX_MARGIN)
    blocks = [torch.full((size,), filler, dtype=torch.uint8) for size in wanted for _ in range(_BLOCKS)]
    return blocks[::2]


def _answer(overload: str, arguments: Arguments) -> list[torch.Tensor] | None:
    """Return the results and the written arguments, or None if ATen refuses the call."""
    op = resolve(overload)
    try:
        bound = bind(op, (), arguments)
        result = references.answer(overload, bound, (0, 0)) if references.has(overload) else call(op, bound)
    except ERRORS:
        return None
    return tensors({"return": result, **{name: arguments[name] for name in written(op)}})


def _moved(ref: TensorRef, margin: int) -> TensorRef:
    return replace(ref, offset=ref.offset + margin)


def _intact(memory: Rebuilt, margin: int, filler: int) -> bool:
    memory_bytes = memory.buffer[memory.start : memory.start + memory.nbytes]
    sides = memory_bytes[:margin], memory_bytes[memory.nbytes - margin :]
    return memory.guards_intact() and all(bool((side == filler).all()) for side in sides)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return True if two tensors are equal bit by bit."""
    if a.is_sparse and b.is_sparse:
        return all(map(_same, (a._indices(), a._values()), (b._indices(), b._values())))
    return same_bits(a, b)


def _same_in_other_layouts(overload: str, packed: Packed, made: Sequence[torch.Tensor]) -> bool:
    """Return True if arguments in other layouts give the same results, up to rounding.

    Contiguous arguments, each in no more memory than it fills, have to give the same. Otherwise the operator
    read memory instead of elements, as native_layer_norm_backward does for mean and rstd with gaps, or it
    counted the storage beyond the elements, as unfold_backward does for a gradient without elements. If some
    elements are not finite, arguments with gaps have to give the same too. ATen computes these one by one, and
    others in vectors; the two paths occasionally disagree about NaN and infinities.
    """
    arguments = unpack(packed)
    if by_storage(arguments):
        return True
    changes: list[Callable[[torch.Tensor], torch.Tensor]] = [lambda t: t.clone(memory_format=torch.contiguous_format)]
    floats = [t for t in (*tensors(arguments), *made) if t.is_floating_point() or t.is_complex()]
    if any(not t.is_sparse and t.dtype.itemsize > 1 and not bool(t.isfinite().all()) for t in floats):
        changes.append(lambda t: torch.stack([t, t], -1)[..., 0])
    for change in changes:
        other = _answer(overload, {name: _changed(value, change) for name, value in unpack(packed).items()})
        if other is None or not all(map(_nearly_equal, made, other)):
            return False
    return True


def _changed(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_changed(v, change) for v in value)
    return change(value) if isinstance(value, torch.Tensor) else value


def _nearly_equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return True if floating results are equal up to the rounding that another summation order causes."""
    if a.is_complex() and b.is_complex():
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    if not a.is_floating_point() or not a.numel() or a.is_sparse:
        return True
    if a.shape != b.shape:
        return False
    largest = float(b.double().nan_to_num(0.0, 0.0, 0.0).abs().max())
    tolerance = min(2.0**-4, 2.0**13 * torch.finfo(a.dtype).eps)
    return torch.allclose(a.double(), b.double(), rtol=tolerance, atol=largest * tolerance, equal_nan=True)


def _overflows(overload: str, inputs: list[torch.Tensor], made: Sequence[torch.Tensor]) -> bool:
    """Return True if finite arguments gave an infinite result, which then depends on the order of operations."""
    floats = [[t._values() if t.is_sparse else t for t in group if t.is_floating_point()] for group in (inputs, made)]
    return (
        not elementwise(overload)
        and not references.has(overload)  # attention pads its sums with infinity
        and all(bool(t.isfinite().all()) for t in floats[0])
        and any(t.numel() for t in floats[0])
        and any(bool(t.isinf().any()) for t in floats[1])
    )
