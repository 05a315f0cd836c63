"""Records in the files of a trace, validated value by value.

Every reader here raises a TraceError that names the file and the field if a value is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from traces import contents as spans
from traces import format as fmt
from traces.errors import TraceError


@dataclass(frozen=True)
class Signature:
    """Calls that differ only in tensor contents and float values, with call counts.

    Attributes:
        key: 16 hexadecimal digits.
        overload: Full name, such as `aten::add.Tensor`.
        kind: See `traces.overloads.kind`.
        arguments: Shapes, strides, dtypes and scalars as text.
        calls: Calls in the recording.
        phases: Calls by phase.
        steps: Runs of consecutive steps, as (first, last, calls in each).
        samples: Ids of the stored calls.
        device: Device on which the calls ran, such as cpu or cuda:0; empty in traces from earlier versions, which do
            not record it.
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
        """Return True if the calls compute or draw random numbers; the platform provides all other calls."""
        return self.kind in ("compute", "random")


@dataclass(frozen=True)
class CallRecord:
    """One stored call, without its tensor bytes.

    Attributes:
        id: Number among the stored calls.
        seq: Number among all calls of the recording.
        step: Training step in which the call ran.
        phase: Phase in which the call ran, such as forward.
        module: Dotted name of the innermost module, relative to the recorded model.
        thread: 0 for the first recording thread, 1 for any other, such as autograd's.
        overload: Full overload name.
        signature: Key of the signature.
        kind: See `traces.overloads.kind`.
        header: Packed arguments, with a content spec for the bytes of each group.
        results: Fingerprints of the result ("return") and of each mutated argument.
        rng: Generator state before the call, if the call is random and the state was recorded.
        device: Device on which the call ran; None in traces from earlier versions.
        grad: True if gradients were enabled; None in traces from earlier versions.
        where: File and line, for error messages.
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
        """Return the content spec of each group; see `traces.contents`."""
        specs: list[Any] = self.header["contents"]
        return specs

    @property
    def level(self) -> str:
        """Return the level of the worst group: full, rows, seeded, stats or meta."""
        return spans.level(self.contents)

    @property
    def nbytes(self) -> int:
        """Return the bytes of tensor contents that the call read, counting aliased bytes once."""
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
    """Read a JSON object from a file, up to `MAX_JSON` bytes. Raise TraceError on failure."""
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
    """Read and check the manifest of the trace in directory `root`. Raise TraceError if it is invalid."""
    path = root / fmt.MANIFEST
    manifest = read_json(path)
    version = manifest.get("format")
    if version != fmt.FORMAT:
        raise TraceError(f"{root} is format {str(version)[:20]}, this toolkit reads {fmt.FORMAT}; upgrade enablekit")
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
    """Return `value` if it is an object whose fields have these types; otherwise raise TraceError.

    A bool does not count as an int.
    """
    if not isinstance(value, dict):
        raise TraceError(f"{where}: holds {type(value).__name__}, expected an object")
    for name, kind in types.items():
        actual = value.get(name)
        if not isinstance(actual, kind) or isinstance(actual, bool):
            raise TraceError(f"{where}: {name} is {str(actual)[:80]!r}, expected {kind.__name__}")
    return value


def signatures_of(path: Path) -> dict[str, Signature]:
    """Read all signatures from signatures.json, by key. Raise TraceError if one is invalid."""
    return {key: _signature(key, value, f"{path}: {key[:80]}") for key, value in read_json(path).items()}


def _signature(key: str, value: Any, where: str) -> Signature:
    fields = check_types(value, _SIGNATURE_TYPES, where)
    counts = [*fields["phases"].values(), *fields["samples"], *(n for run in fields["steps"] for n in _run(run, where))]
    if not all(isinstance(n, int) for n in counts):
        raise TraceError(f"{where}: phases, steps or samples hold something that is not a count")
    return Signature(
        key=key,
        steps=tuple((first, last, calls) for first, last, calls in fields["steps"]),
        samples=tuple(fields["samples"]),
        device=check_types({"device": "", **fields}, {"device": str}, where)["device"],
        **{name: fields[name] for name in ("overload", "kind", "arguments", "calls", "phases")},
    )


def _run(run: Any, where: str) -> list[Any]:
    if not isinstance(run, list) or len(run) != 3:
        raise TraceError(f"{where}: steps holds {str(run)[:80]!r}, expected [first, last, calls]")
    return run


def record_of(value: Any, where: str) -> CallRecord:
    """Return the CallRecord for the JSON of one call line. Raise TraceError if it is invalid."""
    line = check_types(value, _RECORD_TYPES, where)
    if line.get("rng") is not None:
        check_types(line["rng"], {"device": str, "blob": str, "nbytes": int}, f"{where}: rng")
    if line.get("device") is not None:
        check_types(line, {"device": str}, where)
    if not isinstance(line.get("grad"), bool | None):
        raise TraceError(f"{where}: grad is {str(line['grad'])[:80]!r}, expected bool")
    header = check_types(line["header"], {"tree": dict, "tensors": list}, f"{where}: header")
    groups = header.get("groups")
    for i, group in enumerate(groups if isinstance(groups, list) else [None]):
        _nbytes(group, f"{where}: header.groups[{i}]")
    spans.check(header.get("contents"), groups or [], line["id"], f"{where}: header")
    known: dict[str, Any] = {f.name: line.get(f.name) for f in fields(CallRecord)}
    return CallRecord(**{**known, "where": where})


def _nbytes(group: Any, where: str) -> int:
    size: int = check_types(group, {"nbytes": int}, where)["nbytes"]
    if size < 0:
        raise TraceError(f"{where}: nbytes is {size}, expected a number of bytes")
    return size
