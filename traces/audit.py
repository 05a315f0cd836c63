"""Audit that a trace recorded with `values` "seeded" or "stats" contains no user bytes.

The audit also lists the text that remains in the trace, for a person to review.
"""

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

CHUNK = 1 << 22  # bytes per trace whose windows are compared at once; each window takes 8 bytes
WINDOW = 8
MAX_SHOWN = 20  # violations of one kind that are listed individually


@dataclass
class Audit:
    """Result of an audit.

    Attributes:
        violations: One line each; empty if the trace can be shared.
        texts: Strings for a person to review, by location in the trace.
        windows: How many windows from the other trace were searched for; None without another trace.
    """

    JSON = ("violations", "texts", "windows", "passed")
    violations: list[str] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)
    windows: int | None = None

    @property
    def passed(self) -> bool:
        """Return True if there are no violations."""
        return not self.violations


def audit(trace: Trace, against: Trace | None = None) -> Audit:
    """Search a trace for user bytes.

    Args:
        trace: The trace to audit.
        against: A full trace of the same program. None of its contents may occur in `trace`.

    Returns:
        Audit: Violations and remaining text.

    Raises:
        TraceError: If a trace is damaged.
    """
    report = Audit(texts=_texts(trace))
    values = spans.values(trace.manifest)
    if values not in ("seeded", "stats"):
        report.violations.append(
            f"{trace.path}: it holds user bytes (values {values}); record with --values seeded or stats"
        )
        return report
    checks = [_modes(trace), _foreign_files(trace), _stray_blobs(trace), _results(trace)]
    report.violations += [line for check in checks for line in _capped(check)]
    if against is not None:
        report.windows, common = _common_windows(trace, against)
        report.violations += _capped(common)
    return report


def _capped(lines: Iterable[str]) -> list[str]:
    every = list(lines)
    more = [f"... and {len(every) - MAX_SHOWN} more like this"] if len(every) > MAX_SHOWN else []
    return every[:MAX_SHOWN] + more


def _modes(trace: Trace) -> Iterator[str]:
    mode = os.stat(trace.path).st_mode & 0o777
    if mode & 0o077:
        yield f"{trace.path}: others may enter it (mode {mode:o}); chmod 700"


def _foreign_files(trace: Trace) -> Iterator[str]:
    """Yield a line for each file that no reader reads, such as leftovers."""
    for path in sorted(trace.path.iterdir()):
        known = path.name in (fmt.MANIFEST, fmt.SIGNATURES, fmt.CALLS, fmt.DATAFLOW) or fmt.SHARD.fullmatch(path.name)
        if not known or (trace.complete and path.name not in {fmt.MANIFEST, *trace.manifest["files"]}):
            yield f"{path}: is no part of the trace"


def _stray_blobs(trace: Trace) -> Iterator[str]:
    """Yield a line for stored bytes other than pseudonymised ids, and for generator states."""
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
            content = _telling(value)
            if content:
                yield f"{record.where}: results.{name} holds {content} of {record.overload}"


def _telling(value: Json) -> str:
    """Return the name of a fingerprint entry computed from user data, or an empty string."""
    if isinstance(value, list):
        return next(filter(None, map(_telling, value)), "")
    if not isinstance(value, dict):
        return ""  # integers and booleans: sizes and counts
    for name in ("hash", "moments", "float", "complex"):
        if name in value:
            return name if name in ("hash", "moments") else "a number"
    return next(filter(None, (_telling(value[k]) for k in ("indices", "values") if k in value)), "")


def _texts(trace: Trace) -> dict[str, list[str]]:
    """Return distinct strings by location: manifest, modules, phases, arguments."""
    texts_by_place: dict[str, set[str]] = {"manifest": set(), "modules": set(), "phases": set(), "arguments": set()}
    manifest = {k: v for k, v in trace.manifest.items() if k not in ("files", "format")}
    texts_by_place["manifest"] |= {f"{path} = {text}" for path, text in _strings(manifest, "")}
    for record in trace.calls():
        texts_by_place["modules"].add(record.module)
        texts_by_place["phases"].add(record.phase)
        texts_by_place["arguments"] |= {f"{record.overload}: {text}" for text in _argument_texts(record)}
    return {where: sorted(texts - {""}) for where, texts in texts_by_place.items()}


def _argument_texts(record: CallRecord) -> set[str]:
    tagged = {"dtype", "layout", "memory_format", "device", "float", "complex", "unsupported"}
    return {text for path, text in _strings(record.header["tree"], "") if path.rpartition(".")[2] not in tagged}


def _strings(value: Json, path: str) -> Iterator[tuple[str, str]]:
    """Yield every string in some JSON with its path.

    Keys of objects are part of the path, because they may hold a user's text as well.
    """
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, path)


def _common_windows(trace: Trace, against: Trace) -> tuple[int, list[str]]:
    """Count the searched windows from `against`, and describe the files in `trace` that contain one."""
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
    """Yield all bytes in a trace's files, in pieces, with their location.

    The zero padding after blobs is omitted: a window that spans ids and padding could match unrelated data.
    """
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
    """Yield overlapping pieces, so that each pair of adjacent windows lies in one piece."""
    for start in range(0, max(len(data) - WINDOW + 1, 0), CHUNK):
        yield data[start : start + CHUNK + 2 * WINDOW - 1]


def _windows(data: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return a number for each informative 8-byte window that starts in the first CHUNK bytes.

    A window that repeats one byte is omitted. If at most two bytes in a window are not zero, as in padded integers, it
    is extended to 16 bytes, because any small integer occurs in every trace. The longer window is omitted if at most
    two bytes are not zero.
    """
    windows = np.lib.stride_tricks.sliding_window_view(data, WINDOW).copy().view("<u8").reshape(-1)
    filled = np.concatenate(([0], np.cumsum(data != 0)))
    sparse = filled[WINDOW:] - filled[:-WINDOW] <= 2
    dense = ~sparse & (data[: len(windows)] * np.uint64(0x0101010101010101) != windows)
    pairs = sparse[:-WINDOW] & (filled[2 * WINDOW :] - filled[: -2 * WINDOW] > 2)
    both = _mixed(windows[:-WINDOW]) + windows[WINDOW:]
    return np.concatenate((windows[:CHUNK][dense[:CHUNK]], both[:CHUNK][pairs[:CHUNK]]))


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Multiply by the golden ratio and swap the halves, so that results match no number in a file."""
    product = x * np.uint64(0x9E3779B97F4A7C15)
    return (product >> np.uint64(32)) | (product << np.uint64(32))
