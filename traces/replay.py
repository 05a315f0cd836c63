"""Replay of a trace on ATen, on the recording's device or on the CPU.

On the device of the recording the replay must reproduce the recorded bits. On another device it must reproduce the
moments within a tolerance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import OpOverload

from traces import contents as spans
from traces import format as fmt
from traces.contents import NotRecorded
from traces.errors import TraceError
from traces.fingerprint import difference, results, structure, unlike
from traces.materialise import REFUSED, arguments_of, operator, run
from traces.overloads import moves_data, uninitialised, written
from traces.records import CallRecord
from traces.store import Trace
from traces.unwritten import incomparable
from traces.values import Json

# Attention results that a GPU initialises only if the call uses dropout; otherwise they hold uninitialised memory.
_SEEDS = frozenset({"philox_seed", "philox_offset", "rng_state", "unused", "debug_attn_mask"})


@dataclass(frozen=True)
class ReplayMismatch:
    """A call whose replay differs.

    Attributes:
        id: Id of the stored call.
        overload: Full overload name.
        detail: The first difference, or the error that ATen raised.
    """

    id: int
    overload: str
    detail: str


@dataclass
class Report:
    """Outcome of a replay; counts are numbers of calls.

    Attributes:
        exact: Results and mutated arguments are bit-exact. For a non-CPU device, their moments are.
        metadata: Shapes, strides and dtypes are equal, for calls that move no data. For random calls from another
            device, shapes and dtypes are.
        close: Recorded on a device other than the CPU, with moments within tolerance.
        synthesised: Replayed with synthesised contents; shapes, strides and dtypes are equal.
        not_recorded: Stored without contents, so they cannot be replayed.
        not_comparable: Calls that cannot be compared, by reason.
        mismatches: Calls that differ.
        blobs: Blobs whose hashes were checked.
    """

    exact: int = 0
    metadata: int = 0
    close: int = 0
    synthesised: int = 0
    not_recorded: int = 0
    not_comparable: Counter[str] = field(default_factory=Counter)
    mismatches: list[ReplayMismatch] = field(default_factory=list)
    blobs: int = 0

    @property
    def passed(self) -> bool:
        """Return True if no comparable call differs."""
        return not self.mismatches


def verify(
    trace: Trace,
    progress: Callable[[Iterator[CallRecord]], Iterator[CallRecord]] = iter,
    is_available: Callable[[torch.device], bool] = lambda device: False,
) -> Report:
    """Check every blob, replay every stored call and compare the results with the recording.

    The replay uses the recorded number of threads, because that decides the order of sums.

    Args:
        trace: The trace to check.
        progress: Wraps the iteration over the calls, for a progress bar.
        is_available: Returns True for a device whose calls are to be replayed there; all others run on the CPU.

    Returns:
        Report: Counts by outcome, and the calls that differ.

    Raises:
        TraceError: If the trace itself is damaged.
    """
    report = Report(blobs=trace.shards.check())
    with _threads(trace.manifest.get("threads")):
        for record in progress(trace.calls()):
            _judge(trace, record, report, all(_is(is_available, name) for name in _devices(record)))
    return report


def available(device: torch.device) -> bool:
    """Return True if this machine has the device and PyTorch has its own kernels for it.

    Out-of-tree devices (PrivateUse1) never count as available.
    """
    if device.type == "cpu":
        return True
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if (
        accelerator is None
        or accelerator.type != device.type
        or device.type == torch._C._get_privateuse1_backend_name()
    ):
        return False
    return (device.index or 0) < torch.accelerator.device_count()


def _is(is_available: Callable[[torch.device], bool], name: str) -> bool:
    try:
        return is_available(torch.device(name))
    except RuntimeError:  # torch does not know the device; rebuilding the arguments reports the error with its location
        return False


def _judge(trace: Trace, record: CallRecord, report: Report, on_device: bool) -> None:
    reason = _not_comparable(record)
    if reason is not None:
        report.not_comparable[reason] += 1
        return
    if record.level not in spans.REPLAYABLE:
        report.not_recorded += 1
        return
    foreign = bool(_devices(record))
    try:
        fingerprints, left_out = _replayed(trace, record, None if on_device else "cpu")
    except NotRecorded:
        report.not_comparable["what its arguments come from cannot be run again"] += 1
        return
    except TraceError:
        raise
    except Exception as error:  # noqa: BLE001 - one item of a batch: ATen may raise anything on recorded arguments
        if foreign and not on_device and isinstance(error, NotImplementedError):
            report.not_comparable["no CPU kernel"] += 1
        else:
            text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            report.mismatches.append(ReplayMismatch(record.id, record.overload, text))
        return
    counted, detail = _compare(trace, record, fingerprints, foreign, left_out)
    if detail is None and left_out:
        report.not_comparable["; ".join(dict.fromkeys(left_out.values())) + "; nothing else differs"] += 1
    elif detail is None:
        setattr(report, counted, getattr(report, counted) + 1)
    elif counted == "not_comparable":
        report.not_comparable[detail] += 1
    else:
        report.mismatches.append(ReplayMismatch(record.id, record.overload, detail))


def _compare(
    trace: Trace, record: CallRecord, actual: dict[str, Json], foreign: bool, left_out: dict[int, str]
) -> tuple[str, str | None]:
    """Return the Report field that counts the call, and the difference or the reason if there is one.

    `left_out` holds positions in the result that are not compared.
    """
    op = operator(record)
    drawn = record.kind == "random" and (foreign or record.rng is None)
    if record.level == "seeded" or drawn or not record.results or spans.values(trace.manifest) != "full":
        counted = "metadata" if not moves_data(op) or (drawn and foreign) else "synthesised"
        dynamic = torch.Tag.dynamic_output_shape in op.tags
        dropped = {"stride"} if foreign else {"shape", "stride", "coalesced"} if dynamic else set()
        pairs = [
            _without(structure(values.get(n)), dropped) for n in record.results for values in (record.results, actual)
        ]
        return counted, difference(pairs[::2], pairs[1::2], "results")
    skipped = _degraded(record)
    recorded: dict[str, Json] = {n: structure(r) if n in skipped else r for n, r in record.results.items()}
    if left_out:
        recorded, actual = _without_parts(recorded, left_out), _without_parts(actual, left_out)
    counted = "metadata" if not moves_data(op) else "synthesised" if "return" in skipped else "exact"
    if foreign:
        recorded, actual = _without_seeds(op, recorded), _without_seeds(op, actual)
    detail = difference(recorded, actual)
    if not foreign or detail is None:
        return counted, detail
    if recorded.keys() != actual.keys():
        return "close", f"results of {sorted(recorded)} are now of {sorted(actual)}"
    details = [text for n in recorded if (text := unlike(recorded[n], actual[n], n)) is not None]
    detail = details[0] if details else None
    if detail is not None and _floats_differ(recorded, actual):
        return "not_comparable", "answers in another floating dtype on the CPU"
    return "close" if counted == "exact" else counted, detail


def _without_seeds(op: OpOverload, fingerprints: dict[str, Json]) -> dict[str, Json]:
    """Return the fingerprints, reduced to their structure for results that only a random call initialises."""
    parts = fingerprints.get("return")
    names = [r.name for r in op._schema.returns]
    if not isinstance(parts, list) or len(parts) != len(names) or _SEEDS.isdisjoint(names):
        return fingerprints
    reduced = [structure(p) if name in _SEEDS else p for name, p in zip(names, parts, strict=True)]
    return {**fingerprints, "return": reduced}


def _without_parts(fingerprints: dict[str, Json], positions: Collection[int]) -> dict[str, Json]:
    parts = fingerprints.get("return")
    compared = [None if i in positions else p for i, p in enumerate(parts)] if isinstance(parts, list) else parts
    return {**fingerprints, "return": compared}


def _without(value: Json, names: set[str]) -> Json:
    if isinstance(value, list):
        return [_without(f, names) for f in value]
    return {k: _without(v, names) for k, v in value.items() if k not in names} if isinstance(value, dict) else value


def _floats_differ(recorded: Json, actual: Json) -> bool:
    if isinstance(recorded, dict) and isinstance(actual, dict):
        dtypes = recorded.get("dtype"), actual.get("dtype")
        if all(isinstance(d, str) and "float" in d for d in dtypes) and dtypes[0] != dtypes[1]:
            return True
        return any(_floats_differ(recorded[k], actual.get(k)) for k in recorded)
    pairs = zip(recorded, actual, strict=False) if isinstance(recorded, list) and isinstance(actual, list) else ()
    return any(_floats_differ(a, b) for a, b in pairs)


def replay(trace: Trace, record: CallRecord, device: str | None = "cpu") -> dict[str, Json]:
    """Run one stored call in fresh memory and return the fingerprints of its results.

    Args:
        trace: The trace that holds the call.
        record: The stored call.
        device: Device to run on; None for the device of the recording.

    Returns:
        dict: Fingerprints of the result ("return") and of each mutated argument.
    """
    return _replayed(trace, record, device)[0]


def _replayed(trace: Trace, record: CallRecord, device: str | None) -> tuple[dict[str, Json], dict[int, str]]:
    """Return the fingerprints, and the reason for each result position that cannot be compared."""
    arguments = arguments_of(record, trace.packed(record), device)
    left_out = incomparable(record, arguments)
    result = run(trace, record, arguments)
    portable = device is not None and bool(_devices(record))
    return results(operator(record), arguments, result, _degraded(record), portable=portable), left_out


def _degraded(record: CallRecord) -> frozenset[str]:
    """Return the names of results whose contents are unknown: mutated arguments that were not recorded in full.

    "return" is included as well, because the returned value may be one of these arguments.
    """
    groups = {i for i, spec in enumerate(record.contents) if fmt.level(spec) != "full"}
    if not groups:
        return frozenset()
    refs, tree = record.header["tensors"], record.header["tree"]
    partial = {n for n, value in tree.items() if any(refs[t]["group"] in groups for t in _tensors(value))}
    mutated = partial & written(operator(record))
    return frozenset((*mutated, "return")) if mutated else frozenset()


def _tensors(value: Json) -> Iterator[int]:
    """Yield the numbers of the tensors in a packed tree."""
    if isinstance(value, dict):
        if "tensor" in value:
            yield value["tensor"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _tensors(item)


def _devices(record: CallRecord) -> set[str]:
    """Return the devices that the call used, except the CPU."""
    names = {str(g.get("device")) for g in record.header["groups"]}
    names |= {str(v["device"]) for v in record.header["tree"].values() if isinstance(v, dict) and "device" in v}
    return names - {"cpu"}


def _not_comparable(record: CallRecord) -> str | None:
    if not record.overload.startswith("aten::"):
        return "not an ATen operator"
    if record.overload in REFUSED:
        return "acts outside the process"
    op = operator(record)
    unsupported = _unsupported(record.header.get("tree"))
    if unsupported is not None:
        return f"{unsupported} cannot be recorded"
    if _unsupported(record.results) == "no memory behind it":  # results of a device written in Python
        return "result without memory"
    return "uninitialised result" if uninitialised(op) else None


def _unsupported(tree: Json) -> str | None:
    """Return the description of the first value that the recorder could not encode, or None."""
    pending = [tree]
    while pending:
        value = pending.pop()
        if isinstance(value, dict) and "unsupported" in value:
            return str(value["unsupported"])[:80]
        pending += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return None


@contextmanager
def _threads(count: Any) -> Iterator[None]:
    """Set the recorded number of intra-operator threads inside the block, because it decides the order of sums."""
    before = torch.get_num_threads()
    if isinstance(count, int) and 0 < count <= 1024:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
