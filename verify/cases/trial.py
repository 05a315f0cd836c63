"""A call on trial with ATen itself: whether it has an answer there that depends on nothing but its arguments.

ATen trusts its own callers. Given sizes that do not fit, some operators read what lies beside their arguments, or write
there, or bring the process down; so this runs in a child (verify/cases/oracle.py).
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
from verify.cases.case import aten_answer, holds_sparse, same_bits
from verify.cases.soundness import ERRORS, is_sound
from verify.child.serve import stderr_to
from verify.contract.random_state import Philox
from verify.operators import elementwise

MARGIN = 4096  # bytes on either side of an argument, and four times what the largest has
MAX_MARGIN = 1 << 20
_WIDER = dict.fromkeys((torch.float16, torch.bfloat16, torch.float32), torch.float64)
_FILLERS = (0xFF, 0x41)  # what the margins hold: NaN, and 12 as a float32; -1, and a large integer
_M_PERTURB = -6  # of <malloc.h>
_BLOCKS = 16  # of a size around what ATen allocates


class Trial:
    """What a child runs in the place of a kernel."""

    lost = False

    def __init__(self, job: dict[str, Any], mode: str) -> None:
        """As child.serve.Runner; nothing of either is needed."""

    def run(self, header: dict[str, Any], packed: Packed) -> tuple[dict[str, Any], Packed]:
        """Whether the call has an answer, and which of the places that are asked about do not matter to it; or, where
        a request says what is drawn from, that answer."""
        overload, places = header["overload"], header.get("places", ())
        define_all(header.get("subgraphs", []))
        if "philox" in header:
            return _answered(overload, packed, tuple(header["philox"]))
        with torch.no_grad():
            stands = has_answer(overload, packed)
            idle = idle_places(overload, packed, places) if stands and places else []
        return {"status": "ok", "stands": stands, "idle": idle}, Packed({})


def _answered(overload: str, packed: Packed, philox: Philox) -> tuple[dict[str, Any], Packed]:
    try:
        return {"status": "ok", "error": ""}, aten_answer(overload, packed, philox)
    except ERRORS as error:
        return {"status": "ok", "error": str(error)}, Packed({})


def has_answer(overload: str, packed: Packed) -> bool:
    """Whether ATen answers the call, and the same whatever lies around the arguments and however they lie themselves.

    Results that are too large for Triton's interpreter, and infinite ones of finite arguments, are no answer here, nor
    are integers made of NaN and infinities.
    """
    if not is_sound(overload, unpack(packed)):
        return False
    with TemporaryFile() as said, stderr_to(said):
        tried = [_surrounded_answer(overload, packed, filler) for filler in _FILLERS]
        said.seek(0)
        deprecated = b"deprecated" in said.read()
    if tried[0] is None or tried[1] is None or deprecated:
        return False  # such as losses of sizes that do not fit: ATen warns, and takes the mean of the first few
    made = tried[0]
    draws = kind(resolve(overload)) == "random"
    if not draws and not all(map(_same, made, tried[1])):
        return False
    whole = _with_every_gradient(packed)
    if whole is not None and _reads_beside(overload, whole):
        return False
    if not draws and not holds_sparse(packed.tree) and not _same_in_other_layouts(overload, packed, made):
        return False
    return all(fits(overload, r.shape) for r in made) and not _overflows(overload, tensors(unpack(packed)), made)


def _with_every_gradient(packed: Packed) -> Packed | None:
    """Return the call with all gradients wanted; None if its mask already wants all.

    What a call is made of does not depend on which gradients are wanted, so it has to make sense with all of them.
    """
    mask = packed.tree.get("output_mask")
    if not mask or all(mask):
        return None
    return replace(packed, tree={**packed.tree, "output_mask": [True] * len(mask)})


def _reads_beside(overload: str, packed: Packed) -> bool:
    """Return True if ATen's answer depends on what lies around the arguments."""
    one, other = (_surrounded_answer(overload, packed, filler) for filler in _FILLERS)
    return one is not None and other is not None and not all(map(_same, one, other))


def idle_places(overload: str, packed: Packed, places: Sequence[tuple[str, int | None, int]]) -> list[int]:
    """Indices of the places whose elements the answer is without.

    A place is a dimension of an argument or of an item of a list, and means the last elements along it; LAST is the one
    element at the end of all dimensions.

    What lies beyond a size that an operator takes from another argument is idle. One that takes memory for a row of
    elements, whatever its shape, leaves out the end of what is too long.
    """
    dtypes: Mapping[torch.dtype, torch.dtype] = _WIDER  # in which what matters a little is not rounded away
    before = _answer(overload, _apart(packed, dtypes))
    if before is None:
        dtypes = {}
        before = _answer(overload, _apart(packed, dtypes))
    if before is None:
        return []
    return [i for i, place in enumerate(places) if _is_idle(overload, lambda: _apart(packed, dtypes), before, place)]


def _apart(packed: Packed, dtypes: Mapping[torch.dtype, torch.dtype]) -> Arguments:
    """Each argument in memory of its own."""
    copied = lambda t: t.to(dtypes.get(t.dtype, t.dtype)).clone(memory_format=torch.contiguous_format)  # noqa: E731
    return {name: _changed(value, copied) for name, value in unpack(packed).items()}


def _is_idle(
    overload: str, fresh: Callable[[], Arguments], before: list[torch.Tensor], place: tuple[str, int | None, int]
) -> bool:
    """Whether all other elements at the place that ATen takes leave all results as they were."""
    name, item, dim = place
    answered = False
    for other in _OTHERS:
        arguments = fresh()
        given = arguments[name] if item is None else arguments[name][item]
        first, last = (_elements(given, dim, at) for at in (0, -1))
        was = last.clone()
        put = last.copy_(other(last, first)).clone()
        after = _answer(overload, arguments)
        if name in written(resolve(overload)) and _same(last, put):
            last.copy_(was)  # an argument that is written, but not here
        if after is not None and not all(map(_same, before, after)):
            return False
        answered |= after is not None
    return answered


def _elements(t: torch.Tensor, dim: int, at: int) -> torch.Tensor:
    """Those at one index of a dimension, or of every dimension."""
    return t[(at,) * t.dim()] if dim == LAST else t.select(dim, at)


def _unlike(last: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
    """Other elements: numbers that nobody chose, the opposite, or of indices, which stay valid, those at the front."""
    if last.is_floating_point() or last.is_complex():
        return 1.375 - last
    return ~last if last.dtype is torch.bool else first


def _beyond(sign: int) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Other elements: the largest or smallest of all, where numbers are."""
    return lambda last, first: last + sign * 1000 if last.is_floating_point() else _unlike(last, first)


# The second where ATen demands numbers from 0 to 1, the others for what takes the largest or smallest.
_OTHERS = (_unlike, lambda last, first: last / 2, _beyond(1), _beyond(-1))


def _surrounded_answer(overload: str, packed: Packed, filler: int) -> list[torch.Tensor] | None:
    """The results with margins that hold `filler` around the arguments; None if there are none, or it wrote there."""
    most = max((group.nbytes for group in packed.groups), default=0)  # so far ATen may read where sizes do not fit
    margin = min(MARGIN + (4 * most + 127) // 128 * 128, MAX_MARGIN)
    margins = [0 if by_storage(packed.tree) else margin for _ in packed.groups]  # it knows where a storage ends
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
        made = _answer(overload, arguments)
    del neighbours
    if made is None or any(t._version != version and 0 in t.stride() for t, version in before):
        return None  # written were several elements of one address, as batch_norm does beside its schema
    return made if all(_intact(m, margin, filler) for m, margin in zip(memory, margins, strict=True)) else None


@contextmanager
def _fresh_memory(byte: int) -> Iterator[None]:
    """glibc fills what it hands out inside the block with the byte's complement, so that reading it shows; what PyTorch
    takes for results it fills with NaN first for one byte of the two.

    Some operators write beyond their results where sizes do not fit, and read there what nobody else wrote; some hand
    on a result that they did not write, as multi_margin_loss of no rows.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) or (lambda option, value: 0)  # other C libraries have none
    mallopt(_M_PERTURB, byte)
    deterministic: Any = torch.utils.deterministic
    filled = deterministic.fill_uninitialized_memory
    deterministic.fill_uninitialized_memory = filled and byte == _FILLERS[0]
    try:
        yield
    finally:
        deterministic.fill_uninitialized_memory = filled
        mallopt(_M_PERTURB, 0)


def _neighbours(packed: Packed, filler: int) -> list[torch.Tensor]:
    """Blocks as large as the arguments, with holes between them where ATen's copies of these come to lie, which have no
    gaps."""
    sizes = {group.nbytes for group in packed.groups}
    sizes |= {math.prod(ref.shape) * getattr(torch, ref.dtype).itemsize for ref in packed.tensors}
    wanted = sorted(size for size in sizes if 0 < size <= MAX_MARGIN)
    blocks = [torch.full((size,), filler, dtype=torch.uint8) for size in wanted for _ in range(_BLOCKS)]
    return blocks[::2]


def _answer(overload: str, arguments: Arguments) -> list[torch.Tensor] | None:
    """The results, and the arguments that were written."""
    op = resolve(overload)
    try:
        bound = bind(op, (), arguments)
        found = references.answer(overload, bound, (0, 0)) if references.has(overload) else call(op, bound)
    except ERRORS:
        return None
    return tensors({"return": found, **{name: arguments[name] for name in written(op)}})


def _moved(ref: TensorRef, margin: int) -> TensorRef:
    return replace(ref, offset=ref.offset + margin)


def _intact(memory: Rebuilt, margin: int, filler: int) -> bool:
    own = memory.buffer[memory.start : memory.start + memory.nbytes]
    sides = own[:margin], own[memory.nbytes - margin :]
    return memory.guards_intact() and all(bool((side == filler).all()) for side in sides)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """To the bit."""
    if a.is_sparse and b.is_sparse:
        return all(map(_same, (a._indices(), a._values()), (b._indices(), b._values())))
    return same_bits(a, b)


def _same_in_other_layouts(overload: str, packed: Packed, made: Sequence[torch.Tensor]) -> bool:
    """Whether contiguous arguments, each in no more memory than it fills, give the same but for roundings: else memory
    was read and not elements, as by native_layer_norm_backward of mean and rstd with gaps, or what a storage has beside
    the elements was counted in, as by unfold_backward of a gradient without elements. Where some are not finite,
    whether such with gaps do: ATen computes these one by one, and others several at once, which now and then disagree
    about NaN and infinities."""
    arguments = unpack(packed)
    if by_storage(arguments):
        return True
    changes: list[Callable[[torch.Tensor], torch.Tensor]] = [lambda t: t.clone(memory_format=torch.contiguous_format)]
    given = [t for t in (*tensors(arguments), *made) if t.is_floating_point() or t.is_complex()]
    if any(not t.is_sparse and t.dtype.itemsize > 1 and not bool(t.isfinite().all()) for t in given):
        changes.append(lambda t: torch.stack([t, t], -1)[..., 0])
    for change in changes:
        other = _answer(overload, {name: _changed(value, change) for name, value in unpack(packed).items()})
        if other is None or not all(map(_alike, made, other)):
            return False
    return True


def _changed(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_changed(v, change) for v in value)
    return change(value) if isinstance(value, torch.Tensor) else value


def _alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether floating results are the same but for roundings, which another order of additions makes."""
    if a.is_complex() and b.is_complex():
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    if not a.is_floating_point() or not a.numel() or a.is_sparse:
        return True
    if a.shape != b.shape:
        return False
    largest = float(b.double().nan_to_num(0.0, 0.0, 0.0).abs().max())
    most = min(2.0**-4, 2.0**13 * torch.finfo(a.dtype).eps)
    return torch.allclose(a.double(), b.double(), rtol=most, atol=largest * most, equal_nan=True)


def _overflows(overload: str, given: list[torch.Tensor], made: Sequence[torch.Tensor]) -> bool:
    """Whether finite numbers came to infinity on the way, which depends on the order in which a kernel takes them."""
    floats = [
        [t._values() if t.is_sparse else t for t in several if t.is_floating_point()] for several in (given, made)
    ]
    return (
        not elementwise(overload)
        and not references.has(overload)  # attention pads its sums with infinity
        and all(bool(t.isfinite().all()) for t in floats[0])
        and any(t.numel() for t in floats[0])
        and any(bool(t.isinf().any()) for t in floats[1])
    )
