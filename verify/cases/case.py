"""Cases: recorded calls, ready to be replayed against a kernel, and their reference answers.

`case_of` and its variants build a `Case`; `reference` asks ATen on the CPU for the `Expected` results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import torch

from traces import TraceError
from traces.contents import NotRecorded
from traces.materialise import identity
from traces.overloads import bind, positional, resolve
from traces.records import CallRecord
from traces.store import Trace
from traces.subgraphs import is_subgraph, subgraph_of
from traces.values import Packed, on_host, pack, unpack
from traces.widening import answer
from verify.cases import bags, left, oracle, polynomials, preconditions, ranks, references
from verify.cases.elements import as_number, frozen, mapped, positive, promoted, widen, without_denormals
from verify.cases.packed import digest_of, placed, tensor_names, unsupported
from verify.contract.random_state import Philox
from verify.operators import adds_up, group, judged_as


@dataclass(frozen=True)
class Case:
    """One call to replay.

    Attributes:
        id: blake3 digest over the overload, the arguments and the source of their bytes, so equal calls in two
            traces are one case.
        overload: Full name of the ATen overload.
        signature: Signature of the recorded call, a description if the case was generated, or empty.
        load: Function that reads and verifies the arguments anew at each call.
        shapes: Shapes of all argument tensors.
        dtypes: Dtypes of all argument tensors.
        refused: ATen's reason for refusing the call, or empty (verify/cases/refused.py).
        draws: Number of random draws to inspect, if more than usual; else 0.
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
        """Return True if the case was generated rather than recorded (verify/cases/extended.py).

        The signatures of generated cases are descriptions, which contain spaces.
        """
        return " " in self.signature

    @property
    def independence(self) -> str:
        """Return a key that is equal for cases that differ only in tensor contents.

        Such cases add little evidence to each other.
        """
        return self.signature or self.id


def by_overload(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Group cases by overload, preserving their order."""
    cases_by_overload: dict[str, list[Case]] = {}
    for case in cases:
        cases_by_overload.setdefault(case.overload, []).append(case)
    return cases_by_overload


def spread(cases: Sequence[Case], most: int) -> Sequence[Case]:
    """Return at most `most` cases, evenly spaced."""
    return cases[:: -(-len(cases) // most)] if cases and most else ()


def case_of(trace: Trace, record: CallRecord) -> Case:
    """Return the case for one stored call that can be replayed.

    Raises:
        TraceError: The call's record is damaged.
    """
    try:
        tensors = record.header["tensors"]
        shapes, dtypes = tuple(tuple(t["shape"]) for t in tensors), tuple(str(t["dtype"]) for t in tensors)
        name = identity(trace, record)
    except (KeyError, TypeError) as error:
        raise TraceError(f"{record.where}: header: not a packed call ({error!r})") from error
    load = lambda: on_host(trace.packed(record))  # noqa: E731
    return Case(name, record.overload, record.signature, load, shapes, dtypes)


def case_of_values(overload: str, **arguments: Any) -> Case:
    """Return the case for these arguments, by schema name. Their bytes are copied now."""
    return case_of_packed(overload, pack(arguments))


def case_of_packed(overload: str, packed: Packed) -> Case:
    """Return the case for packed arguments. Their bytes are copied now."""
    packed = placed(packed)
    data = [None if d is None else bytes(d) for d in packed.data]
    load = lambda: Packed(packed.tree, packed.tensors, packed.groups, list(data))  # noqa: E731
    shapes, dtypes = tuple(tuple(ref.shape) for ref in packed.tensors), tuple(ref.dtype for ref in packed.tensors)
    return Case(digest_of(overload, packed)[:32], overload, "", load, shapes, dtypes)


Ask: TypeAlias = Callable[[str, Packed, Philox], Packed]  # same parameters and result as `aten_answer`


def aten_answer(overload: str, packed: Packed, philox: Philox) -> Packed:
    """Return ATen's answer to a call.

    The packed result holds every argument after the call by its name, and the result as "return".
    """
    arguments = unpack(packed)
    after = pack({**arguments, "return": call_aten(overload, arguments, philox)})
    after.data = [None if d is None else bytes(d) for d in after.data]
    return after


def call_aten(overload: str, arguments: dict[str, Any], philox: Philox) -> Any:
    """Call ATen and return its result. Arguments that the overload writes are modified in place.

    A subgraph runs widened if an argument is float64 but none of its declared inputs is.
    """
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
    """Expected answer to a call.

    All packed values hold every argument after the call by its name, and the result as "return". Their trees
    are equal.

    Attributes:
        overload: Full name of the ATen overload.
        before: The arguments before the call.
        native: ATen's answer in the case's own dtypes.
        values: ATen's answer in float64 if it supports that, else `native`.
        sizes: For operators that add up terms, the float64 answer to the absolute values of the arguments; for
            polynomials, an estimate (verify/cases/polynomials.py). Rounding errors are relative to it if terms
            cancel (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1).
        widened: The arguments in float64, or None.
        philox: Seed and offset from which the call draws.
        ask: Function that answers in ATen's place.
        flushes: True if denormal numbers are 0 where the kernel runs.
    """

    overload: str
    before: Packed
    native: Packed
    values: Packed
    sizes: Packed | None = None
    widened: Packed | None = None
    philox: Philox = (0, 0)
    ask: Ask = field(default=aten_answer, compare=False)
    flushes: bool = False

    @cached_property
    def nudged(self) -> list[Packed]:
        """Return float64 answers to arguments that are perturbed by about one rounding of the computing dtype.

        The list is empty if there is no float64 answer. No algorithm in that dtype can be more accurate than
        the distance between these answers (Higham 2002, section 1.6).
        """
        if self.widened is not None and self.values is self.native:
            return []
        try:
            answers = self._answers_nudged(lambda relative: relative)
        except RuntimeError:  # an argument left its domain, such as a probability that was 1
            try:
                answers = self._answers_nudged(lambda relative: -relative.abs())
            except RuntimeError:  # no answer exists nearby, for example if the rank of a matrix is ambiguous
                answers = []
        return [f for f in answers if f.tree["return"] == self.native.tree["return"]]

    @cached_property
    def moved(self) -> list[Packed]:
        """Return answers to calls in which one argument differs by one rounding of the computing dtype.

        Each step of a computation has an error this large, and a kernel may order its steps differently from
        ATen.
        """
        wide = self.widened if self.widened is not None and self.values is not self.native else self.before
        names = [name.partition("[")[0] for name in tensor_names(wide.tree)]
        answers = []
        for argument in dict.fromkeys(names):
            groups = {ref.group for ref, name in zip(wide.tensors, names, strict=True) if name == argument}
            for sign in (1, -1):  # 1 itself may be the largest allowed value

                def moved(t: torch.Tensor, sign: int = sign) -> torch.Tensor:
                    return t * (1 + sign * (self._rounding if wide is self.widened else torch.finfo(t.dtype).eps))

                try:
                    call = as_number(wide, argument, 1 + sign * self._rounding) or mapped(wide, moved, groups)
                    answers.append(self.ask(self.overload, call, self.philox))
                except (RuntimeError, TypeError, NotImplementedError):
                    continue
                break
        return [f for f in answers if f.tree["return"] == self.native.tree["return"]]

    def _answers_nudged(self, change: Callable[[torch.Tensor], torch.Tensor]) -> list[Packed]:
        generator = torch.Generator().manual_seed(0)
        wide, step = self._wide

        def nudge(t: torch.Tensor) -> torch.Tensor:
            return t * (1 + step * change(torch.randn(t.shape, generator=generator, dtype=torch.float64)))

        return [self.ask(self.overload, mapped(wide, nudge), self.philox) for _ in range(2)]

    @property
    def _wide(self) -> tuple[Packed, float]:
        """Return the float64 arguments and the relative rounding step in the kernel's computing dtype.

        If there are no widened arguments, these are the original ones and the rounding step in float64.
        """
        return (self.before, 2.0**-52) if self.widened is None else (self.widened, self._rounding)

    @property
    def _rounding(self) -> float:
        """Return the rounding step of float32, or of float64 if all results are float64.

        A sum over float32 may have a float64 result, and is then computed in float64.
        """
        dtypes = {getattr(torch, ref.dtype) for ref in self.native.tensors[len(self.before.tensors) :]}
        return 2.0**-52 if dtypes and dtypes <= {torch.float64, torch.complex128} else 2.0**-24


class NoReference(Exception):
    """Raised if the operator's own answer to a case is not available on this machine.

    The message gives the reason in one line.
    """


def has_reference(case: Case) -> bool:
    """Return True if ATen answers the call in a way that a kernel can be compared with."""
    try:
        reference(case)
    except NoReference:
        return False
    return True


def reference(case: Case, philox: Philox = (0, 0), flushes: bool = False) -> Expected:
    """Run the operator twice on the CPU, each time on its own copy of the bytes, and return the answers.

    Args:
        case: The call to answer.
        philox: Seed and offset, for calls whose draws are fixed (verify/cases/references.py).
        flushes: True to replace denormal numbers in the arguments by 0, for a chip that computes so.

    Returns:
        The native and the float64 answer, with the inputs that later comparisons need.

    Raises:
        TraceError: The trace is damaged.
        NoReference: The arguments are not available, or ATen does not answer.
    """
    try:
        before = case.load()
    except NotRecorded as error:
        raise NoReference(f"its arguments cannot be had: {error}") from error
    before = mapped(before, without_denormals) if flushes else before
    unrecorded = unsupported(before.tree)
    if unrecorded:
        raise NoReference(f"an argument could not be recorded: {unrecorded}")
    demands = preconditions.has_preconditions(case.overload)
    beyond = preconditions.broken(case.overload, unpack(before)) if demands else None
    if beyond is not None:
        raise NoReference(f"PyTorch documents no answer; of {beyond.argument} it says: {beyond.says}")
    # A generated call may crash the process that asks ATen, so a child asks.
    ask = oracle.answered if case.made else aten_answer
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
        values = native  # the operator has no float64 implementation, or requires the case's own dtypes
    if values.tree["return"] != native.tree["return"]:
        values = native
    sizes = _sizes(ask, case.overload, widened or before, native, philox)
    return Expected(case.overload, before, native, values, sizes, widened, philox, ask, flushes)


def _promoted(overload: str, before: Packed, native: Packed) -> Packed | None:
    """Return a pointwise call on integers in float64, if all its results have one floating dtype.

    ATen first promotes the integers to that dtype, so the promotion error is part of the right answer.
    """
    if is_subgraph(overload) or group(overload) != "pointwise":
        return None
    dtypes = {getattr(torch, ref.dtype) for ref in native.tensors[len(before.tensors) :]}
    dtype = dtypes.pop() if len(dtypes) == 1 else torch.bool
    return promoted(before, dtype) if dtype.is_floating_point else None


def _settled(overload: str, packed: Packed, philox: Philox) -> Packed:
    """Return the call with arguments that follow this library's conventions for random state."""
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
        if polynomials.is_polynomial(overload):
            answer = polynomials.ask_sizes(ask, overload, packed, philox)
        else:
            finite = mapped(packed, lambda t: t.abs().nan_to_num(0.0, posinf=0.0))
            answer = ask(overload, positive(finite), philox)
    except (RuntimeError, NotImplementedError, TypeError):
        return None
    return answer if answer.tree["return"] == native.tree["return"] else None
