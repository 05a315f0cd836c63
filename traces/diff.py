"""Differences between two recordings of one program.

Reports signatures that are new, gone, or called more or less often.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from traces.records import Signature
from traces.store import Trace

_SETTINGS = ("python", "machine", "threads", "matmul_precision", "deterministic")


@dataclass(frozen=True)
class Change:
    """A signature, or an overload, whose call count differs.

    Attributes:
        overload: Full overload name.
        arguments: Argument text; empty for a whole overload.
        before: Calls in the first trace; 0 if the signature is new.
        after: Calls in the second trace; 0 if the signature is gone.
    """

    overload: str
    arguments: str
    before: int
    after: int

    @property
    def kind(self) -> str:
        """Return "new", "gone" or "changed"."""
        return "new" if not self.before else "changed" if self.after else "gone"


@dataclass(frozen=True)
class Diff:
    """The differences between two traces.

    Attributes:
        versions: Versions in each trace, with the model.
        settings: Other environment settings that differ, as (before, after).
        changes: Signatures whose counts differ, sorted by overload, then by arguments.
        overloads: Call counts for each overload that only one trace has.
        same: Number of signatures with equal counts.
    """

    versions: tuple[dict[str, Any], dict[str, Any]]
    settings: dict[str, tuple[Any, Any]]
    changes: list[Change]
    overloads: list[Change]
    same: int

    @property
    def equal(self) -> bool:
        """Return True if both traces recorded the same calls equally often."""
        return not self.changes


def diff(before: Trace, after: Trace) -> Diff:
    """Compare the signatures of two traces. Raise TraceError if a trace is damaged."""
    a, b = _calls(before), _calls(after)
    changes = [Change(*key, a[key], b[key]) for key in sorted(a.keys() | b.keys()) if a[key] != b[key]]
    names = _by_overload(a), _by_overload(b)
    only_one = sorted(names[0].keys() ^ names[1].keys())
    overloads = [Change(name, "", names[0][name], names[1][name]) for name in only_one]
    return Diff(
        (_versions(before), _versions(after)),
        _settings(before, after),
        changes,
        overloads,
        len(a.keys() | b.keys()) - len(changes),
    )


def _calls(trace: Trace) -> Counter[tuple[str, str]]:
    calls = Counter[tuple[str, str]]()
    for signature in trace.signatures.values():
        calls[_identity(signature)] += signature.calls
    return calls


def _identity(signature: Signature) -> tuple[str, str]:
    return signature.overload, signature.arguments


def _by_overload(calls: Counter[tuple[str, str]]) -> Counter[str]:
    totals = Counter[str]()
    for (overload, _), count in calls.items():
        totals[overload] += count
    return totals


def _versions(trace: Trace) -> dict[str, Any]:
    versions = trace.manifest.get("versions") or {}
    return {"model": (trace.manifest.get("info") or {}).get("model"), **versions}


def _settings(before: Trace, after: Trace) -> dict[str, tuple[Any, Any]]:
    """Return switches that differ, and model settings that both traces have and that differ."""
    a, b = _environment(before), _environment(after)
    return {name: (a[name], b[name]) for name in sorted(a.keys() & b.keys()) if a[name] != b[name]}


def _environment(trace: Trace) -> dict[str, Any]:
    manifest = trace.manifest
    info = manifest.get("info") or {}
    settings = info.get("settings")
    return {
        **{name: manifest.get(name) for name in _SETTINGS},
        "steps": manifest.get("steps"),
        **{name: info.get(name) for name in ("device", "imported")},
        **{f"setting {name}": value for name, value in (settings if isinstance(settings, dict) else {}).items()},
    }
