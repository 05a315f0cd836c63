"""Replaying a trace on CPU ATen: the recorded bits must come out again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from traces.errors import TraceError, UserError
from traces.fingerprint import difference, results
from traces.overloads import call, moves_data, resolve, uninitialised
from traces.store import CallRecord, Trace
from traces.values import Json, unpack

# Operators that act outside the process; a trace from elsewhere must not reach them.
_REFUSED = frozenset({"aten::from_file", "aten::from_file.out"})


@dataclass(frozen=True)
class Mismatch:
    """A call whose replay differs. detail: what differs first, or the error that ATen raised."""

    id: int
    overload: str
    detail: str


@dataclass
class Report:
    """What replaying a trace found, in calls.

    exact: results and mutated arguments are bit-exact. metadata: shapes, strides and dtypes are equal, for calls that
    move no data. not_comparable: calls by the reason why they cannot be compared.
    """

    exact: int = 0
    metadata: int = 0
    not_comparable: Counter[str] = field(default_factory=Counter)
    mismatches: list[Mismatch] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """True if no comparable call differs."""
        return not self.mismatches


def verify(trace: Trace, progress: Callable[[Iterator[CallRecord]], Iterator[CallRecord]] = iter) -> Report:
    """Replay every stored call and compare with what was recorded. progress: wraps the iteration over the calls.

    Runs with the recorded number of threads. Raises TraceError where the trace itself is damaged.
    """
    report = Report()
    with _threads(trace.manifest.get("threads")):
        for record in progress(trace.calls()):
            _judge(trace, record, report)
    return report


def _judge(trace: Trace, record: CallRecord, report: Report) -> None:
    reason = _not_comparable(record)
    if reason is not None:
        report.not_comparable[reason] += 1
        return
    try:
        found = replay(trace, record)
    except TraceError:
        raise
    except Exception as error:  # noqa: BLE001 - one item of a batch: ATen may raise anything on recorded arguments
        report.mismatches.append(Mismatch(record.id, record.overload, f"{type(error).__name__}: {error}"[:200]))
        return
    detail = difference(record.results, found)
    if detail is not None:
        report.mismatches.append(Mismatch(record.id, record.overload, detail))
    elif moves_data(resolve(record.overload)):
        report.exact += 1
    else:
        report.metadata += 1


def replay(trace: Trace, record: CallRecord) -> dict[str, Json]:
    """Run one stored call on the CPU, in fresh memory; returns the fingerprints of its results."""
    op = resolve(record.overload)
    arguments = _on_cpu(unpack(trace.packed(record), f"{record.where}: header"))
    if arguments.keys() != {a.name for a in op._schema.arguments}:
        raise TraceError(f"{record.where}: header.tree names {sorted(arguments)}, the schema is {op._schema}")
    with torch.no_grad(), _generator_state(trace, record):
        result = call(op, arguments)
    return results(op, arguments, result)


def _not_comparable(record: CallRecord) -> str | None:
    if not record.overload.startswith("aten::"):
        return "not an ATen operator"
    if record.overload in _REFUSED:
        return "acts outside the process"
    try:
        op = resolve(record.overload)
    except UserError as error:
        raise TraceError(f"{record.where}: overload: {error}") from error
    unsupported = _unsupported(record.header.get("tree"))
    if unsupported is not None:
        return f"{unsupported} cannot be recorded"
    devices = {str(g.get("device")) for g in record.header["groups"]} - {"cpu"}
    if devices:
        return f"recorded on {', '.join(sorted(devices))}"
    return "uninitialised result" if uninitialised(op) else None


def _unsupported(tree: Json) -> str | None:
    """What the first value is that the recorder could not encode, or None."""
    pending = [tree]
    while pending:
        value = pending.pop()
        if isinstance(value, dict) and "unsupported" in value:
            return str(value["unsupported"])[:80]
        pending += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return None


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.device):
        return torch.device("cpu")
    if isinstance(value, dict):
        return {k: _on_cpu(v) for k, v in value.items()}
    return value


@contextmanager
def _generator_state(trace: Trace, record: CallRecord) -> Iterator[None]:
    """The default CPU generator in the recorded state; afterwards as it was."""
    with torch.random.fork_rng(devices=[]):
        if record.rng is not None:
            state = trace.blob(record.rng["blob"], record.rng["nbytes"], f"{record.where}: rng")
            torch.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
        yield


@contextmanager
def _threads(count: Any) -> Iterator[None]:
    """The recorded number of intra-operator threads, which decides the order of sums; afterwards as it was."""
    before = torch.get_num_threads()
    if isinstance(count, int) and 0 < count <= 1024:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
