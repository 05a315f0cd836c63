"""Cases: recorded calls made ready to replay against a kernel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import torch
from blake3 import blake3

from traces import TraceError
from traces.contents import NotRecorded
from traces.materialise import STORAGE_ALIGNMENT, identity
from traces.overloads import bind, positional, resolve
from traces.records import CallRecord
from traces.store import Trace
from traces.subgraphs import is_subgraph, subgraph_of
from traces.values import Packed, numel, on_host, pack, unpack
from traces.widening import answer
from verify.cases import bags, left, oracle, preconditions, ranks, references
from verify.cases.elements import as_number, frozen, mapped, positive, promoted, widen
from verify.contract.random_state import Philox
from verify.operators import adds_up, group, judged_as


@dataclass(frozen=True)
class Case:
    """id: blake3 of overload, arguments and what gives their bytes, so equal calls of two traces are one case.

    load: the arguments, read and verified anew at each call. shapes, dtypes: of all their tensors. refused: why ATen
    refuses the call, if it does (verify/cases/refused.py). draws: how many are looked at, if more than usual.
    """

    id: str
    overload: str
    signature: str
    load: Callable[[], Packed]
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    refused: str = ""
    draws: int = 0

    @property
    def made(self) -> bool:
        """Whether nobody is known to have made the call (verify/cases/extended.py), which its signature tells."""
        return " " in self.signature

    @property
    def independence(self) -> str:
        """Equal for cases that tell little beside each other, being alike but for the contents of tensors."""
        return self.signature or self.id


def by_overload(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Cases of each overload, in their order."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.overload, []).append(case)
    return found


def spread(cases: Sequence[Case], most: int) -> Sequence[Case]:
    """Return at most so many of the cases, spread evenly."""
    return cases[:: -(-len(cases) // most)] if cases and most else ()


def case_of(trace: Trace, record: CallRecord) -> Case:
    """The case of one stored call whose level is replayable. Raises TraceError if its record is damaged."""
    try:
        tensors = record.header["tensors"]
        shapes, dtypes = tuple(tuple(t["shape"]) for t in tensors), tuple(str(t["dtype"]) for t in tensors)
        name = identity(trace, record)
    except (KeyError, TypeError) as error:
        raise TraceError(f"{record.where}: header: not a packed call ({error!r})") from error
    load = lambda: on_host(trace.packed(record))  # noqa: E731
    return Case(name, record.overload, record.signature, load, shapes, dtypes)


def case_of_values(overload: str, **arguments: Any) -> Case:
    """A case of given arguments, by schema name; their bytes are copied now."""
    return case_of_packed(overload, pack(arguments))


def case_of_packed(overload: str, packed: Packed) -> Case:
    """A case of arguments that were packed; their bytes are copied now."""
    # Storages begin at multiples of 64 bytes; which one it is this time is no part of the case.
    packed = replace(packed, groups=[replace(group, align=group.align % STORAGE_ALIGNMENT) for group in packed.groups])
    data = [None if d is None else bytes(d) for d in packed.data]
    digest = blake3(json.dumps([overload, packed.header()]).encode())
    for span in data:
        digest.update(span or b"")
    load = lambda: Packed(packed.tree, packed.tensors, packed.groups, list(data))  # noqa: E731
    shapes, dtypes = tuple(tuple(ref.shape) for ref in packed.tensors), tuple(ref.dtype for ref in packed.tensors)
    return Case(digest.hexdigest()[:32], overload, "", load, shapes, dtypes)


Ask: TypeAlias = Callable[[str, Packed, Philox], Packed]  # what `aten_answer` is given, and gives


def aten_answer(overload: str, packed: Packed, philox: Philox) -> Packed:
    """What ATen makes of a call: every argument after it by its name, and the result under "return"."""
    arguments = unpack(packed)
    after = pack({**arguments, "return": call_aten(overload, arguments, philox)})
    after.data = [None if d is None else bytes(d) for d in after.data]
    return after


def call_aten(overload: str, arguments: dict[str, Any], philox: Philox) -> Any:
    """What ATen returns; arguments that the overload writes are written."""
    op = resolve(overload)
    bound = bind(op, (), arguments)
    subgraph = subgraph_of(overload)
    with torch.no_grad():
        if subgraph is not None:
            wide = any(t.dtype is torch.float64 for t in bound.values()) and all(
                a.dtype != "float64" for a in subgraph.inputs
            )
            return (subgraph.widened() if wide else subgraph).run(*bound.values())
        known = references.has(overload)
        return references.answer(overload, bound, philox) if known else answer(op, *positional(op, bound))


@dataclass(frozen=True)
class Expected:
    """What the operator answers: `native` as ATen answers in the case's own dtypes, `values` in float64 where it can.

    All hold every argument after the call by its name and the result under "return"; their trees are alike. sizes: of
    operators that add up terms, the answer to the arguments' absolute values, in float64: what rounding is relative to
    where terms cancel (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1). widened: the
    arguments in float64, if there are such. philox: what the call draws from. ask: who answers for ATen.
    """

    overload: str
    before: Packed
    native: Packed
    values: Packed
    sizes: Packed | None = None
    widened: Packed | None = None
    philox: Philox = (0, 0)
    ask: Ask = field(default=aten_answer, compare=False)

    @cached_property
    def nudged(self) -> list[Packed]:
        """Answers in float64 to arguments that differ by about a rounding in the dtype that a kernel computes in; none
        where there is no float64.

        How far they lie apart is what no algorithm in that dtype can be held to (Higham 2002, section 1.6).
        """
        if self.widened is not None and self.values is self.native:
            return []
        try:
            found = self._answers_nudged(lambda relative: relative)
        except RuntimeError:  # an argument left its range, such as a probability that was 1
            try:
                found = self._answers_nudged(lambda relative: -relative.abs())
            except RuntimeError:  # there is no answer close by, as where it is open of which rank a matrix is
                found = []
        return [f for f in found if f.tree["return"] == self.native.tree["return"]]

    @cached_property
    def moved(self) -> list[Packed]:
        """Answers to calls in which one argument differs by a rounding in the dtype that a kernel computes in.

        A step of a computation errs by as much; a kernel may take its steps in another order than ATen.
        """
        wide = self.widened if self.widened is not None and self.values is not self.native else self.before
        names = [name.partition("[")[0] for name in tensor_names(wide.tree)]
        found = []
        for argument in dict.fromkeys(names):
            groups = {ref.group for ref, name in zip(wide.tensors, names, strict=True) if name == argument}
            for sign in (1, -1):  # 1 itself may be the largest that is taken

                def moved(t: torch.Tensor, sign: int = sign) -> torch.Tensor:
                    return t * (1 + sign * (self._rounding if wide is self.widened else torch.finfo(t.dtype).eps))

                try:
                    call = as_number(wide, argument, 1 + sign * self._rounding) or mapped(wide, moved, groups)
                    found.append(self.ask(self.overload, call, self.philox))
                except (RuntimeError, TypeError, NotImplementedError):
                    continue
                break
        return [f for f in found if f.tree["return"] == self.native.tree["return"]]

    def _answers_nudged(self, change: Callable[[torch.Tensor], torch.Tensor]) -> list[Packed]:
        generator = torch.Generator().manual_seed(0)
        wide, step = self._wide

        def nudge(t: torch.Tensor) -> torch.Tensor:
            return t * (1 + step * change(torch.randn(t.shape, generator=generator, dtype=torch.float64)))

        return [self.ask(self.overload, mapped(wide, nudge), self.philox) for _ in range(2)]

    @property
    def _wide(self) -> tuple[Packed, float]:
        """The arguments in float64, and a rounding of what a kernel computes with them in, which moves a float64."""
        return (self.before, 2.0**-52) if self.widened is None else (self.widened, self._rounding)

    @property
    def _rounding(self) -> float:
        """Of float32, but where all results are float64, as a sum of float32 may be: then it is computed in that."""
        dtypes = {getattr(torch, ref.dtype) for ref in self.native.tensors[len(self.before.tensors) :]}
        return 2.0**-52 if dtypes and dtypes <= {torch.float64, torch.complex128} else 2.0**-24


class NoReference(Exception):
    """The operator's own answer to a case cannot be had on this machine; the message says why, in a line."""


def has_reference(case: Case) -> bool:
    """Return True if ATen answers the call in a way that a kernel can be compared with."""
    try:
        reference(case)
    except NoReference:
        return False
    return True


def reference(case: Case, philox: Philox = (0, 0)) -> Expected:
    """Run the operator twice on the CPU, each time on its own copy of the bytes.

    philox: what a call draws from whose draws are fixed (verify/cases/references.py).
    Raises TraceError on a damaged trace, NoReference where there are no arguments or no answer of ATen.
    """
    try:
        before = case.load()
    except NotRecorded as error:
        raise NoReference(f"its arguments cannot be had: {error}") from error
    unrecorded = unsupported(before.tree)
    if unrecorded:
        raise NoReference(f"an argument could not be recorded: {unrecorded}")
    demands = preconditions.has_preconditions(case.overload)
    beyond = preconditions.broken(case.overload, unpack(before)) if demands else None
    if beyond is not None:
        raise NoReference(f"PyTorch documents no answer; of {beyond.argument} it says: {beyond.says}")
    ask = oracle.answered if case.made else aten_answer  # which may bring down the process that it is asked in
    try:
        before = _settled(case.overload, before, philox)
        native = ask(case.overload, before, philox)
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError) as error:
        raise NoReference(f"ATen on the CPU does not answer: {' '.join(str(error).split())[:200]}") from error
    widened = widen(before) or _promoted(case.overload, before, native)
    if left.depends(case.overload, before):
        ask = partial(left.ask_again, ask)
    if ranks.depends(case.overload, before):
        ask = partial(ranks.ask_for, ask, torch.finfo(getattr(torch, before.tensors[0].dtype)).eps)
    if bags.ends_early(case.overload, before):
        ask = partial(bags.ask_cut, ask)
    try:
        values = ask(case.overload, widened, philox) if widened is not None else native
    except (RuntimeError, NotImplementedError, TypeError):
        values = native  # the operator has no float64 implementation, or demands the case's own dtypes
    if values.tree["return"] != native.tree["return"]:
        values = native
    sizes = _sizes(ask, case.overload, widened or before, native, philox)
    return Expected(case.overload, before, native, values, sizes, widened, philox, ask)


def _promoted(overload: str, before: Packed, native: Packed) -> Packed | None:
    """Return the call of a pointwise operator on integers in float64, if its results are of one floating dtype.

    ATen promotes the integers to that dtype first, so its own answer has the errors of that.
    """
    if is_subgraph(overload) or group(overload) != "pointwise":
        return None
    dtypes = {getattr(torch, ref.dtype) for ref in native.tensors[len(before.tensors) :]}
    dtype = dtypes.pop() if len(dtypes) == 1 else torch.bool
    return promoted(before, dtype) if dtype.is_floating_point else None


def _settled(overload: str, packed: Packed, philox: Philox) -> Packed:
    """The call as it is once a kernel of this library's conventions has made its arguments."""
    if not references.has(overload):
        return packed
    arguments = unpack(packed)
    if not references.settle(overload, bind(resolve(overload), (), arguments), philox):
        return packed
    return replace(packed, data=frozen(pack(arguments)).data)


def _sizes(ask: Ask, overload: str, packed: Packed, native: Packed, philox: Philox) -> Packed | None:
    if not adds_up(judged_as(overload, packed.tree)):
        return None
    try:
        found = ask(overload, positive(mapped(packed, torch.abs)), philox)
    except (RuntimeError, NotImplementedError, TypeError):
        return None
    return found if found.tree["return"] == native.tree["return"] else None


def holds_special(packed: Packed) -> bool:
    """Whether an argument holds NaN or an infinity."""
    told = [contents(packed, i) for i, ref in enumerate(packed.tensors) if packed.data[ref.group] is not None]
    return not all(bool((t.float() if t.dtype.itemsize == 1 else t).isfinite().all()) for t in told)


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one dtype hold the same, element by element; a lone element may have any stride."""
    flat = [t.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format).reshape(-1) for t in (a, b)]
    return a.shape == b.shape and torch.equal(*(t.view(torch.uint8) for t in flat))


def unsupported(tree: Any) -> str:
    """What the first value is that the recorder could not store, or nothing."""
    if isinstance(tree, dict):
        if "unsupported" in tree:
            return str(tree["unsupported"])[:80]
        tree = list(tree.values())
    return next(filter(None, map(unsupported, tree)), "") if isinstance(tree, list) else ""


def holds_sparse(tree: Any) -> bool:
    """Whether there is a sparse tensor in a packed tree."""
    if isinstance(tree, dict):
        return "sparse_coo" in tree or any(map(holds_sparse, tree.values()))
    return isinstance(tree, list) and any(map(holds_sparse, tree))


def tensor_names(tree: dict[str, Any]) -> list[str]:
    """A readable name of each tensor of a packed tree, in their order: `self`, `tensors[2]`, `return[0]`."""
    names: list[str] = []

    def walk(value: Any, path: str) -> None:
        if isinstance(value, list):
            for i, item in enumerate(value):
                walk(item, f"{path}[{i}]")
        elif isinstance(value, dict):
            for key, item in value.items():
                if key == "tensor":
                    names.append(path)
                else:
                    walk(item, path if key in ("tuple", "sparse_coo") else f"{path}.{key}")

    for name, value in tree.items():
        walk(value, name)
    return names


def contents(packed: Packed, index: int) -> torch.Tensor:
    """Tensor `index` of a packed call, by value: contiguous, in its own dtype."""
    ref = packed.tensors[index]
    data = packed.data[ref.group]
    dtype = getattr(torch, ref.dtype)
    if data is None or not numel(ref):
        return torch.empty(ref.shape, dtype=dtype)
    flat = torch.frombuffer(bytearray(data)[ref.offset :], dtype=torch.uint8)
    flat = flat[: flat.numel() // dtype.itemsize * dtype.itemsize].view(dtype)
    dense = flat.as_strided(ref.shape, ref.stride).clone(memory_format=torch.contiguous_format)
    dense = dense.conj().resolve_conj() if ref.conj else dense
    return -dense if ref.neg else dense
