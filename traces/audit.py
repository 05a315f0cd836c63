"""Proof that a trace recorded with `values` "seeded" or "stats" holds no user bytes, and what text remains in it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traces import contents as spans
from traces import format as fmt
from traces.errors import TraceError
from traces.records import CallRecord
from traces.store import Trace
from traces.values import Json

CHUNK = 1 << 22  # bytes of each trace whose windows are compared at once; a window takes 8 bytes
WINDOW = 8
MAX_SHOWN = 20  # violations of one kind that are told one by one


@dataclass
class Audit:
    """What was found in a trace.

    violations: a line each; none in a trace that is fit to be handed out. texts: what a person should look through, by
    where it stands. windows: how many of the other trace's bytes were looked for; None without one.
    """

    JSON = ("violations", "texts", "windows", "passed")
    violations: list[str] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)
    windows: int | None = None

    @property
    def passed(self) -> bool:
        """True if nothing was found."""
        return not self.violations


def audit(trace: Trace, against: Trace | None = None) -> Audit:
    """Look for user bytes in a trace. against: a full trace of the same program, of whose contents none may occur.

    Raises TraceError where a trace is damaged.
    """
    found = Audit(texts=_texts(trace))
    values = spans.values(trace.manifest)
    if values not in ("seeded", "stats"):
        found.violations.append(
            f"{trace.path}: it holds user bytes (values {values}); record with --values seeded or stats"
        )
        return found
    checks = [_modes(trace), _foreign_files(trace), _stray_blobs(trace), _results(trace)]
    found.violations += [line for check in checks for line in _capped(check)]
    if against is not None:
        found.windows, common = _common_windows(trace, against)
        found.violations += _capped(common)
    return found


def _capped(lines: Iterable[str]) -> list[str]:
    every = list(lines)
    more = [f"... and {len(every) - MAX_SHOWN} more like this"] if len(every) > MAX_SHOWN else []
    return every[:MAX_SHOWN] + more


def _modes(trace: Trace) -> Iterator[str]:
    mode = os.stat(trace.path).st_mode & 0o777
    if mode & 0o077:
        yield f"{trace.path}: others may enter it (mode {mode:o}); chmod 700"


def _foreign_files(trace: Trace) -> Iterator[str]:
    """Files that no reader looks at: left behind, or put there."""
    for path in sorted(trace.path.iterdir()):
        known = path.name in (fmt.MANIFEST, fmt.SIGNATURES, fmt.CALLS, fmt.DATAFLOW) or fmt.SHARD.fullmatch(path.name)
        if not known or (trace.complete and path.name not in {fmt.MANIFEST, *trace.manifest["files"]}):
            yield f"{path}: is no part of the trace"


def _stray_blobs(trace: Trace) -> Iterator[str]:
    """Bytes other than pseudonymised ids, and generator states."""
    ids = set()
    for record in trace.calls():
        for i, spec in enumerate(record.contents):
            if isinstance(spec, dict) and "ids" in spec:
                ids.add(spec["ids"])
            elif any(spans.blobs([spec])):
                yield f"{record.where}: header.contents[{i}] holds bytes of {record.overload}"
        if record.rng is not None:
            yield f"{record.where}: rng holds the state of a generator"
    for key in sorted(trace.shards.keys() - ids):
        yield f"{trace.path}: blob {key} is not pseudonymised ids"


def _results(trace: Trace) -> Iterator[str]:
    for record in trace.calls():
        for name, value in record.results.items():
            what = _telling(value)
            if what:
                yield f"{record.where}: results.{name} holds {what} of {record.overload}"


def _telling(value: Json) -> str:
    """What in a fingerprint was computed from user data, or nothing."""
    if isinstance(value, list):
        return next(filter(None, map(_telling, value)), "")
    if not isinstance(value, dict):
        return ""  # whole numbers and truth values: sizes and counts
    for name in ("hash", "moments", "float", "complex"):
        if name in value:
            return name if name in ("hash", "moments") else "a number"
    return next(filter(None, (_telling(value[k]) for k in ("indices", "values") if k in value)), "")


def _texts(trace: Trace) -> dict[str, list[str]]:
    """Distinct texts by where they stand: manifest, modules, phases, arguments."""
    found: dict[str, set[str]] = {"manifest": set(), "modules": set(), "phases": set(), "arguments": set()}
    manifest = {k: v for k, v in trace.manifest.items() if k not in ("files", "format")}
    found["manifest"] |= {f"{path} = {text}" for path, text in _strings(manifest, "")}
    for record in trace.calls():
        found["modules"].add(record.module)
        found["phases"].add(record.phase)
        found["arguments"] |= {f"{record.overload}: {text}" for text in _argument_texts(record)}
    return {where: sorted(texts - {""}) for where, texts in found.items()}


def _argument_texts(record: CallRecord) -> set[str]:
    tagged = {"dtype", "layout", "memory_format", "device", "float", "complex", "unsupported"}
    return {text for path, text in _strings(record.header["tree"], "") if path.rpartition(".")[2] not in tagged}


def _strings(value: Json, path: str) -> Iterator[tuple[str, str]]:
    """Every text in some JSON with its path; keys of objects are part of the path, and so are texts of a user too."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, path)


def _common_windows(trace: Trace, against: Trace) -> tuple[int, list[str]]:
    """How many windows of the contents of `against` were looked for, and the files of `trace` that hold one."""
    if not against.shards.keys():
        raise TraceError(
            f"{against.path}: holds no tensor contents to look for; name a trace recorded with --values full"
        )
    total, hits = 0, dict[str, str]()
    for number, (name, mine) in enumerate(_parts(trace)):
        known = np.unique(_windows(mine))
        for key, data in against.shards.spans():
            for piece in _pieces(data):
                theirs = _windows(piece)
                total += 0 if number else len(theirs)
                common = theirs[np.isin(theirs, known)]
                if len(common):
                    example = common[0].tobytes().hex()
                    hits.setdefault(name, f"{name}: windows such as {example} also lie in blob {key} of {against.path}")
    return total, list(hits.values())


def _parts(trace: Trace) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """All bytes of a trace's files in pieces, but for the zeros behind blobs: with ids they would look like others."""
    for path in sorted(p for p in trace.path.iterdir() if p.is_file() and p.stat().st_size):
        data: NDArray[np.uint8] = np.memmap(path, np.uint8, "r")
        if fmt.SHARD.fullmatch(path.name):
            data = data[: 8 + int.from_bytes(data[:8].tobytes(), "little")]
        yield from ((str(path), piece) for piece in _pieces(data))
    specs = [s for record in trace.calls() for s in record.contents if isinstance(s, dict) and "ids" in s]
    lengths = {spec["ids"]: spec["count"] * spec["width"] for spec in specs}
    for key, blob in trace.shards.spans():
        yield from ((f"{trace.path}: blob {key}", piece) for piece in _pieces(blob[: lengths.get(key, len(blob))]))


def _pieces(data: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    """Cut so that each pair of windows lies in one piece."""
    for start in range(0, max(len(data) - WINDOW + 1, 0), CHUNK):
        yield data[start : start + CHUNK + 2 * WINDOW - 1]


def _windows(data: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """A number for every 8 bytes in a row, from any of the first CHUNK bytes on, but for those that tell nothing.

    Left out: one byte eight times. Of bytes that are zeros but for one or two, as in padded integers, 16 in a row are
    taken in place of 8, and left out if they are zeros but for two: any small integer occurs in every trace.
    """
    found = np.lib.stride_tricks.sliding_window_view(data, WINDOW).copy().view("<u8").reshape(-1)
    filled = np.concatenate(([0], np.cumsum(data != 0)))
    sparse = filled[WINDOW:] - filled[:-WINDOW] <= 2
    dense = ~sparse & (data[: len(found)] * np.uint64(0x0101010101010101) != found)
    pairs = sparse[:-WINDOW] & (filled[2 * WINDOW :] - filled[: -2 * WINDOW] > 2)
    both = _mixed(found[:-WINDOW]) + found[WINDOW:]
    return np.concatenate((found[:CHUNK][dense[:CHUNK]], both[:CHUNK][pairs[:CHUNK]]))


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The same numbers, unlike any that occur in files: multiplied by the golden ratio, halves exchanged."""
    product = x * np.uint64(0x9E3779B97F4A7C15)
    return (product >> np.uint64(32)) | (product << np.uint64(32))
