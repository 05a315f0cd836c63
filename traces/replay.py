"""Replaying a trace on ATen, where it was recorded or on the CPU: the recorded bits must come out again, or, on another
device than the recording's, values like them."""

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

# Results of attention on a GPU that only dropout gives a value: without it they are what was in memory.
_SEEDS = frozenset({"philox_seed", "philox_offset", "rng_state", "unused", "debug_attn_mask"})


@dataclass(frozen=True)
class ReplayMismatch:
    """A call whose replay differs. detail: what differs first, or the error that ATen raised."""

    id: int
    overload: str
    detail: str


@dataclass
class Report:
    """What replaying a trace found, in calls.

    exact: results and mutated arguments are bit-exact; on another device than the CPU, their moments are. metadata:
    shapes, strides and dtypes are equal, for calls that move no data, and shapes and dtypes for random ones of another
    device. close: recorded on another device than the CPU, with moments within tolerance. synthesised: run with
    synthesised contents, and equal in shapes, strides and dtypes.
    not_recorded: stored without contents to run them with. not_comparable: calls by the reason why they cannot be
    compared. blobs: whose hashes were checked.
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
        """True if no comparable call differs."""
        return not self.mismatches


def verify(
    trace: Trace,
    progress: Callable[[Iterator[CallRecord]], Iterator[CallRecord]] = iter,
    there: Callable[[torch.device], bool] = lambda device: False,
) -> Report:
    """Check every blob, replay every stored call and compare with what was recorded.

    progress: wraps the iteration over the calls. there: whether calls of a device are to be run on it; all others run
    on the CPU. Runs with the recorded number of threads. Raises TraceError where the trace itself is damaged.
    """
    report = Report(blobs=trace.shards.check())
    with _threads(trace.manifest.get("threads")):
        for record in progress(trace.calls()):
            _judge(trace, record, report, all(_is(there, name) for name in _devices(record)))
    return report


def available(device: torch.device) -> bool:
    """Whether this machine has a device, with kernels of PyTorch's own."""
    if device.type == "cpu":
        return True
    here = torch.accelerator.current_accelerator(check_available=True)
    if here is None or here.type != device.type or device.type == torch._C._get_privateuse1_backend_name():
        return False
    return (device.index or 0) < torch.accelerator.device_count()


def _is(there: Callable[[torch.device], bool], name: str) -> bool:
    try:
        return there(torch.device(name))
    except RuntimeError:  # no device at all: what rebuilds the arguments says where it stands
        return False


def _judge(trace: Trace, record: CallRecord, report: Report, there: bool) -> None:
    reason = _not_comparable(record)
    if reason is not None:
        report.not_comparable[reason] += 1
        return
    if record.level not in spans.REPLAYABLE:
        report.not_recorded += 1
        return
    foreign = bool(_devices(record))
    try:
        found, left_out = _replayed(trace, record, None if there else "cpu")
    except NotRecorded:
        report.not_comparable["what its arguments come from cannot be run again"] += 1
        return
    except TraceError:
        raise
    except Exception as error:  # noqa: BLE001 - one item of a batch: ATen may raise anything on recorded arguments
        if foreign and not there and isinstance(error, NotImplementedError):
            report.not_comparable["no CPU kernel"] += 1
        else:
            text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            report.mismatches.append(ReplayMismatch(record.id, record.overload, text))
        return
    counted, detail = _compare(trace, record, found, foreign, left_out)
    if detail is None and left_out:
        report.not_comparable["; ".join(dict.fromkeys(left_out.values())) + "; nothing else differs"] += 1
    elif detail is None:
        setattr(report, counted, getattr(report, counted) + 1)
    elif counted == "not_comparable":
        report.not_comparable[detail] += 1
    else:
        report.mismatches.append(ReplayMismatch(record.id, record.overload, detail))


def _compare(
    trace: Trace, record: CallRecord, found: dict[str, Json], foreign: bool, left_out: dict[int, str]
) -> tuple[str, str | None]:
    """The field of the report that the call counts for, and what differs or why it cannot be compared, if anything.

    left_out: positions of the results that are not compared.
    """
    op = operator(record)
    drawn = record.kind == "random" and (foreign or record.rng is None)
    if record.level == "seeded" or drawn or not record.results or spans.values(trace.manifest) != "full":
        counted = "metadata" if not moves_data(op) or (drawn and foreign) else "synthesised"
        dynamic = torch.Tag.dynamic_output_shape in op.tags
        dropped = {"stride"} if foreign else {"shape", "stride", "coalesced"} if dynamic else set()
        pairs = [
            _without(structure(values.get(n)), dropped) for n in record.results for values in (record.results, found)
        ]
        return counted, difference(pairs[::2], pairs[1::2], "results")
    skipped = _degraded(record)
    recorded: dict[str, Json] = {n: structure(r) if n in skipped else r for n, r in record.results.items()}
    if left_out:
        recorded, found = _without_parts(recorded, left_out), _without_parts(found, left_out)
    counted = "metadata" if not moves_data(op) else "synthesised" if "return" in skipped else "exact"
    if foreign:
        recorded, found = _without_seeds(op, recorded), _without_seeds(op, found)
    detail = difference(recorded, found)
    if not foreign or detail is None:
        return counted, detail
    if recorded.keys() != found.keys():
        return "close", f"results of {sorted(recorded)} are now of {sorted(found)}"
    details = [text for n in recorded if (text := unlike(recorded[n], found[n], n)) is not None]
    detail = details[0] if details else None
    if detail is not None and _floats_differ(recorded, found):
        return "not_comparable", "answers in another floating dtype on the CPU"
    return "close" if counted == "exact" else counted, detail


def _without_seeds(op: OpOverload, found: dict[str, Json]) -> dict[str, Json]:
    """The results, and of those that only a call that draws gives a value their structure alone."""
    parts = found.get("return")
    names = [r.name for r in op._schema.returns]
    if not isinstance(parts, list) or len(parts) != len(names) or _SEEDS.isdisjoint(names):
        return found
    kept = [structure(p) if name in _SEEDS else p for name, p in zip(names, parts, strict=True)]
    return {**found, "return": kept}


def _without_parts(found: dict[str, Json], positions: Collection[int]) -> dict[str, Json]:
    parts = found.get("return")
    kept = [None if i in positions else p for i, p in enumerate(parts)] if isinstance(parts, list) else parts
    return {**found, "return": kept}


def _without(found: Json, names: set[str]) -> Json:
    if isinstance(found, list):
        return [_without(f, names) for f in found]
    return {k: _without(v, names) for k, v in found.items() if k not in names} if isinstance(found, dict) else found


def _floats_differ(recorded: Json, found: Json) -> bool:
    if isinstance(recorded, dict) and isinstance(found, dict):
        dtypes = recorded.get("dtype"), found.get("dtype")
        if all(isinstance(d, str) and "float" in d for d in dtypes) and dtypes[0] != dtypes[1]:
            return True
        return any(_floats_differ(recorded[k], found.get(k)) for k in recorded)
    pairs = zip(recorded, found, strict=False) if isinstance(recorded, list) and isinstance(found, list) else ()
    return any(_floats_differ(a, b) for a, b in pairs)


def replay(trace: Trace, record: CallRecord, device: str | None = "cpu") -> dict[str, Json]:
    """Run one stored call in fresh memory of a device, None: of the recording's; returns its results' fingerprints."""
    return _replayed(trace, record, device)[0]


def _replayed(trace: Trace, record: CallRecord, device: str | None) -> tuple[dict[str, Json], dict[int, str]]:
    """The fingerprints, and which results cannot be compared, with the reason."""
    arguments = arguments_of(record, trace.packed(record), device)
    left_out = incomparable(record, arguments)
    result = run(trace, record, arguments)
    portable = device is not None and bool(_devices(record))
    return results(operator(record), arguments, result, _degraded(record), portable=portable), left_out


def _degraded(record: CallRecord) -> frozenset[str]:
    """Names of results whose contents cannot be known: mutated arguments that were not recorded in full.

    The returned value may be one of them.
    """
    groups = {i for i, spec in enumerate(record.contents) if fmt.level(spec) != "full"}
    if not groups:
        return frozenset()
    refs, tree = record.header["tensors"], record.header["tree"]
    partial = {n for n, value in tree.items() if any(refs[t]["group"] in groups for t in _tensors(value))}
    mutated = partial & written(operator(record))
    return frozenset((*mutated, "return")) if mutated else frozenset()


def _tensors(value: Json) -> Iterator[int]:
    """Numbers of the tensors in a packed tree."""
    if isinstance(value, dict):
        if "tensor" in value:
            yield value["tensor"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _tensors(item)


def _devices(record: CallRecord) -> set[str]:
    """Where the call ran, besides the CPU."""
    found = {str(g.get("device")) for g in record.header["groups"]}
    found |= {str(v["device"]) for v in record.header["tree"].values() if isinstance(v, dict) and "device" in v}
    return found - {"cpu"}


def _not_comparable(record: CallRecord) -> str | None:
    if not record.overload.startswith("aten::"):
        return "not an ATen operator"
    if record.overload in REFUSED:
        return "acts outside the process"
    op = operator(record)
    unsupported = _unsupported(record.header.get("tree"))
    if unsupported is not None:
        return f"{unsupported} cannot be recorded"
    if _unsupported(record.results) == "no memory behind it":  # of a device in Python
        return "result without memory"
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
