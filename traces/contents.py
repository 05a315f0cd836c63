"""Content specs: the part of a call line that says how to obtain the bytes of each span.

A span is stored as whole bytes, as some rows of a table, or as a recipe to draw or reproduce it, or not at all. This
module validates the JSON; `traces.materialise` turns it into bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from traces import format as fmt
from traces.errors import TraceError

Spec: TypeAlias = Any  # one entry of header.contents, as JSON

REPLAYABLE = fmt.LEVELS[:3]
MAX_SYNTHESISED = 1 << 32  # bytes that one call may synthesise instead of storing
QUANTILES = 21
_FRACTIONS = ("zeros", "nan", "posinf", "neginf")


class NotRecorded(TraceError):
    """Raised if a call's values are neither in the trace nor reproducible from it."""


def level(contents: list[Spec]) -> str:
    """Return the level of a call, which is the level of its worst span."""
    return max(map(fmt.level, contents), key=fmt.LEVELS.index, default="full")


def values(manifest: dict[str, Any]) -> str:
    """Return the manifest's `values` limit: "full", "seeded" or "stats"."""
    limits = manifest.get("info", {}).get("limits")
    return str(limits.get("values", "full")) if isinstance(limits, dict) else "full"


def blobs(contents: list[Spec]) -> Iterator[str]:
    """Yield the keys of the blobs that the spans refer to."""
    for spec in contents:
        if isinstance(spec, dict):
            yield from (spec[name] for name in ("blob", "rows", "ids") if name in spec)
        elif spec:
            yield spec


def sources(contents: list[Spec]) -> Iterator[dict[str, Any]]:
    """Yield the `from` entries of the spans: a call to run again, with its output or argument."""
    return (spec["from"] for spec in contents if isinstance(spec, dict) and "from" in spec)


def check(contents: Any, groups: list[Any], call: int, where: str) -> None:
    """Raise a TraceError that names the field unless each group of call `call` has one well-formed spec."""
    if not isinstance(contents, list) or len(contents) != len(groups):
        raise TraceError(f"{where}.groups and {where}.contents do not match")
    claimed = 0
    for i, (spec, group) in enumerate(zip(contents, groups, strict=True)):
        check_span(spec, call, f"{where}.contents[{i}]")
        if isinstance(spec, dict) and spec["level"] in REPLAYABLE:
            claimed += group["nbytes"]
    if claimed > MAX_SYNTHESISED:
        raise TraceError(f"{where}.contents claim {claimed} bytes to be synthesised, the limit is {MAX_SYNTHESISED}")


def check_span(spec: Spec, call: int, where: str) -> None:
    """Raise a TraceError that names `where` and the field unless this is a content spec of call `call`."""
    if spec is None or spec == "":
        return
    if not isinstance(spec, dict):
        _key(spec, where)
        return
    if spec.get("level") not in fmt.LEVELS:
        raise TraceError(f"{where}.level is {_shown(spec.get('level'))}, expected one of: {', '.join(fmt.LEVELS)}")
    if "why" in spec and not isinstance(spec["why"], str):
        raise TraceError(f"{where}.why is {_shown(spec['why'])}, expected text")
    _FORMS[spec["level"]](spec, call, where)


def _check_full(spec: Spec, call: int, where: str) -> None:
    _key(spec.get("blob"), f"{where}.blob")
    if spec.get("compact") is not True:
        raise TraceError(f"{where}.compact is {_shown(spec.get('compact'))}, expected true")


def _check_rows(spec: Spec, call: int, where: str) -> None:
    _key(spec.get("rows"), f"{where}.rows")
    _key(spec.get("blob"), f"{where}.blob")
    _whole(spec.get("count"), 0, MAX_SYNTHESISED, f"{where}.count")
    _check_drawn(spec, call, where)


def _check_seeded(spec: Spec, call: int, where: str) -> None:
    forms: dict[str, Callable[[Spec, int, str], None]] = {
        "stats": _check_drawn,
        "from": _check_from,
        "ids": _check_ids,
    }
    present = [name for name in forms if name in spec]
    if len(present) != 1:
        raise TraceError(f"{where} has {' and '.join(present) or 'none'} of {', '.join(forms)}, expected one")
    forms[present[0]](spec, call, where)


def _check_drawn(spec: Spec, call: int, where: str) -> None:
    _whole(spec.get("seed"), 0, 1 << 64, f"{where}.seed")
    _check_stats(spec, call, where)


def _check_stats(spec: Spec, call: int, where: str) -> None:
    check_stats(spec.get("stats"), f"{where}.stats")


def _check_from(spec: Spec, call: int, where: str) -> None:
    source, where = spec["from"], f"{where}.from"
    if not isinstance(source, dict) or ("output" in source) == ("argument" in source):
        raise TraceError(f"{where} is {_shown(source)}, expected call with either output or argument")
    _whole(source.get("call"), 0, 1 << 62, f"{where}.call")
    if source["call"] >= call:
        raise TraceError(f"{where}.call is {source['call']}, expected a call before {call}")
    if "argument" in source and not isinstance(source["argument"], str):
        raise TraceError(f"{where}.argument is {_shown(source['argument'])}, expected a name")
    name = "path" if "argument" in source else "output"
    path = source.get(name)
    if not isinstance(path, list) or len(path) > 8 or not all(_is_whole(n, 0, 1 << 32) for n in path):
        raise TraceError(f"{where}.{name} is {_shown(path)}, expected a list of positions")


def _check_ids(spec: Spec, call: int, where: str) -> None:
    _key(spec["ids"], f"{where}.ids")
    if spec.get("width") not in (1, 2, 4, 8) or isinstance(spec["width"], bool):
        raise TraceError(f"{where}.width is {_shown(spec.get('width'))}, expected 1, 2, 4 or 8")
    _whole(spec.get("low"), -(1 << 63), 1 << 64, f"{where}.low")
    _whole(spec.get("count"), 0, MAX_SYNTHESISED, f"{where}.count")


_FORMS: dict[str, Callable[[Spec, int, str], None]] = {
    "full": _check_full,
    "rows": _check_rows,
    "seeded": _check_seeded,
    "stats": _check_stats,
    "meta": lambda spec, call, where: None,
}


def check_stats(stats: Any, where: str) -> None:
    """Raise a TraceError that names the field unless these are valid statistics.

    The format is that of `traces.synthesis.summarise`.
    """
    if not isinstance(stats, dict):
        raise TraceError(f"{where} is {_shown(stats)}, expected an object")
    for name in ("count", "ones"):
        if name in stats:
            _whole(stats[name], 0, 1 << 62, f"{where}.{name}")
    for name in ("sorted", "unique"):
        if not isinstance(stats.get(name, False), bool):
            raise TraceError(f"{where}.{name} is {_shown(stats[name])}, expected true or false")
    quantiles = stats.get("quantiles", [0] * QUANTILES)
    if not isinstance(quantiles, list) or len(quantiles) != QUANTILES:
        raise TraceError(f"{where}.quantiles is {_shown(quantiles)}, expected {QUANTILES} numbers")
    numbers = {name: stats[name] for name in ("min", "max", "mean", "std", *_FRACTIONS) if name in stats}
    for name, value in [*numbers.items(), *(("quantiles", q) for q in quantiles)]:
        if not _is_number(value):
            raise TraceError(f"{where}.{name} holds {_shown(value)}, expected a finite number")
    shares = [stats.get(name, 0) for name in _FRACTIONS]
    if min(shares) < 0 or sum(shares) > 1 + 1e-9:
        raise TraceError(f"{where}: {', '.join(_FRACTIONS)} are {shares}, expected fractions of 1")
    if ("min" in stats) != ("max" in stats) or stats.get("min", 0) > stats.get("max", 0):
        raise TraceError(f"{where}: min {stats.get('min')} and max {stats.get('max')} are no range")
    if any(a > b for a, b in zip(quantiles, quantiles[1:], strict=False)):
        raise TraceError(f"{where}.quantiles is {_shown(quantiles)}, expected ascending numbers")


def _is_number(value: Any) -> bool:
    return _is_whole(value, -(1 << 64), 1 << 64) or (isinstance(value, float) and math.isfinite(value))


def _is_whole(value: Any, low: int, end: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value < end


def _whole(value: Any, low: int, end: int, where: str) -> None:
    if not _is_whole(value, low, end):
        raise TraceError(f"{where} is {_shown(value)}, expected a whole number from {low} to {end - 1}")


def _key(value: Any, where: str) -> None:
    if not isinstance(value, str) or not fmt.BLOB_KEY.fullmatch(value):
        raise TraceError(f"{where}: {_shown(value)} is not the key of a blob")


def _shown(value: Any) -> str:
    return repr(value)[:80]
