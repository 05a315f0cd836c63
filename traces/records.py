"""What the files of a trace hold, checked value by value: a TraceError names file and field of one that is wrong."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from traces import contents as spans
from traces import format as fmt
from traces.errors import TraceError


@dataclass(frozen=True)
class Signature:
    """Calls that are alike, and how often they occurred.

    key: 16 hexadecimal digits. arguments: shapes, strides, dtypes and scalars as text. phases: calls by phase. steps:
    runs of steps, as (first, last, calls in each). samples: ids of the stored calls. device: where the calls ran, such
    as cpu or cuda:0; empty in a trace of an earlier version, which does not say.
    """

    key: str
    overload: str
    kind: str
    arguments: str
    calls: int
    phases: dict[str, int]
    steps: tuple[tuple[int, int, int], ...]
    samples: tuple[int, ...]
    device: str = ""

    @property
    def computes(self) -> bool:
        """Whether its calls compute or draw; all else is what a platform provides."""
        return self.kind in ("compute", "random")


@dataclass(frozen=True)
class CallRecord:
    """One stored call, without its bytes.

    id: its number among the stored calls. seq: its number among all calls of the recording. module: dotted name of the
    innermost module, relative to the recorded model. header: the packed arguments, with what gives their bytes.
    results: fingerprints of the result ("return") and of each mutated argument. rng: state of the generator before the
    call, where the call is random. device: where it ran. grad: whether gradients were on. Both are None in a
    trace of an earlier version. where: file and line, for messages.
    """

    id: int
    seq: int
    step: int
    phase: str
    module: str
    thread: int
    overload: str
    signature: str
    kind: str
    header: dict[str, Any]
    results: dict[str, Any]
    rng: dict[str, Any] | None
    device: str | None
    grad: bool | None
    where: str

    @property
    def contents(self) -> list[Any]:
        """What is known of the bytes of each group: see `traces.contents`."""
        specs: list[Any] = self.header["contents"]
        return specs

    @property
    def level(self) -> str:
        """Of its worst group: full, rows, seeded, stats or meta."""
        return spans.level(self.contents)

    @property
    def nbytes(self) -> int:
        """Bytes of tensor contents that the call read, aliased ones counted once."""
        return sum(g["nbytes"] for g in self.header["groups"] if g.get("known", True))


_RECORD_TYPES = {
    **dict.fromkeys(("id", "seq", "step", "thread"), int),
    **dict.fromkeys(("phase", "module", "overload", "signature", "kind"), str),
    **dict.fromkeys(("header", "results"), dict),
}
_SIGNATURE_TYPES = {
    **dict.fromkeys(("overload", "kind", "arguments"), str),
    **dict.fromkeys(("samples", "steps"), list),
    "calls": int,
    "phases": dict,
}
_MANIFEST_TYPES = {
    **dict.fromkeys(("calls", "stored", "steps", "threads"), int),
    **dict.fromkeys(("info", "versions", "errors", "skipped", "levels"), dict),
}


def read_json(path: Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            text = file.read(fmt.MAX_JSON + 1)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read ({error.strerror})") from error
    if len(text) > fmt.MAX_JSON:
        raise TraceError(f"{path}: over the limit of {fmt.MAX_JSON} bytes")
    value = fmt.parse_json(text, str(path))
    if not isinstance(value, dict):
        raise TraceError(f"{path}: holds {type(value).__name__}, expected an object")
    return value


def manifest_of(root: Path) -> dict[str, Any]:
    path = root / fmt.MANIFEST
    manifest = read_json(path)
    found = manifest.get("format")
    if found != fmt.FORMAT:
        raise TraceError(f"{root} is format {str(found)[:20]}, this toolkit reads {fmt.FORMAT}; upgrade enablekit")
    if manifest.get("state") not in ("open", "complete"):
        raise TraceError(f"{path}: state is {str(manifest.get('state'))[:80]!r}, expected 'open' or 'complete'")
    for name, kind in _MANIFEST_TYPES.items():
        if name in manifest:
            check_types(manifest, {name: kind}, str(path))
    if manifest["state"] == "complete":
        _check_listing(manifest.get("files"), path)
    return manifest


def _check_listing(files: Any, path: Path) -> None:
    needed = {fmt.CALLS, fmt.SIGNATURES}
    if not isinstance(files, dict) or not needed <= files.keys():
        raise TraceError(f"{path}: files does not list {' and '.join(sorted(needed))}")
    for name, size in files.items():
        if name not in needed | {fmt.DATAFLOW} and not fmt.SHARD.fullmatch(name):
            raise TraceError(f"{path}: files lists {name[:80]!r}, which is not the name of a trace's file")
        if not isinstance(size, int) or isinstance(size, bool):
            raise TraceError(f"{path}: files.{name} is {str(size)[:80]!r}, expected a number of bytes")


def check_types(value: Any, types: dict[str, type], where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TraceError(f"{where}: holds {type(value).__name__}, expected an object")
    for name, kind in types.items():
        found = value.get(name)
        if not isinstance(found, kind) or isinstance(found, bool):
            raise TraceError(f"{where}: {name} is {str(found)[:80]!r}, expected {kind.__name__}")
    return value


def signatures_of(path: Path) -> dict[str, Signature]:
    return {key: _signature(key, value, f"{path}: {key[:80]}") for key, value in read_json(path).items()}


def _signature(key: str, value: Any, where: str) -> Signature:
    found = check_types(value, _SIGNATURE_TYPES, where)
    counts = [*found["phases"].values(), *found["samples"], *(n for run in found["steps"] for n in _run(run, where))]
    if not all(isinstance(n, int) for n in counts):
        raise TraceError(f"{where}: phases, steps or samples hold something that is not a count")
    return Signature(
        key=key,
        steps=tuple((first, last, calls) for first, last, calls in found["steps"]),
        samples=tuple(found["samples"]),
        device=check_types({"device": "", **found}, {"device": str}, where)["device"],
        **{name: found[name] for name in ("overload", "kind", "arguments", "calls", "phases")},
    )


def _run(run: Any, where: str) -> list[Any]:
    if not isinstance(run, list) or len(run) != 3:
        raise TraceError(f"{where}: steps holds {str(run)[:80]!r}, expected [first, last, calls]")
    return run


def record_of(value: Any, where: str) -> CallRecord:
    found = check_types(value, _RECORD_TYPES, where)
    if found.get("rng") is not None:
        check_types(found["rng"], {"device": str, "blob": str, "nbytes": int}, f"{where}: rng")
    if found.get("device") is not None:
        check_types(found, {"device": str}, where)
    if not isinstance(found.get("grad"), bool | None):
        raise TraceError(f"{where}: grad is {str(found['grad'])[:80]!r}, expected bool")
    header = check_types(found["header"], {"tree": dict, "tensors": list}, f"{where}: header")
    groups = header.get("groups")
    for i, group in enumerate(groups if isinstance(groups, list) else [None]):
        _nbytes(group, f"{where}: header.groups[{i}]")
    spans.check(header.get("contents"), groups or [], found["id"], f"{where}: header")
    known: dict[str, Any] = {f.name: found.get(f.name) for f in fields(CallRecord)}
    return CallRecord(**{**known, "where": where})


def _nbytes(group: Any, where: str) -> int:
    size: int = check_types(group, {"nbytes": int}, where)["nbytes"]
    if size < 0:
        raise TraceError(f"{where}: nbytes is {size}, expected a number of bytes")
    return size
