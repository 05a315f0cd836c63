"""What differs between two recordings of one program: signatures that are new, gone, or called more or less often."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from traces.records import Signature
from traces.store import Trace

_SETTINGS = ("python", "machine", "threads", "matmul_precision", "deterministic")


@dataclass(frozen=True)
class Change:
    """A signature whose number of calls differs. before or after is 0 where it is new or gone."""

    overload: str
    arguments: str
    before: int
    after: int

    @property
    def kind(self) -> str:
        """new, gone or changed."""
        return "new" if not self.before else "changed" if self.after else "gone"


@dataclass(frozen=True)
class Diff:
    """versions: of both, with the model. settings: what else differs between the recordings' environments.

    changes: by overload, then by arguments. overloads: the calls of each overload that only one of the traces has.
    """

    versions: tuple[dict[str, Any], dict[str, Any]]
    settings: dict[str, tuple[Any, Any]]
    changes: list[Change]
    overloads: list[Change]
    same: int

    @property
    def equal(self) -> bool:
        """True if both recorded the same calls equally often."""
        return not self.changes


def diff(before: Trace, after: Trace) -> Diff:
    """Compare the signatures of two traces. Raises TraceError where one is damaged."""
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
    found = Counter[tuple[str, str]]()
    for signature in trace.signatures.values():
        found[_identity(signature)] += signature.calls
    return found


def _identity(signature: Signature) -> tuple[str, str]:
    return signature.overload, signature.arguments


def _by_overload(calls: Counter[tuple[str, str]]) -> Counter[str]:
    found = Counter[str]()
    for (overload, _), count in calls.items():
        found[overload] += count
    return found


def _versions(trace: Trace) -> dict[str, Any]:
    found = trace.manifest.get("versions") or {}
    return {"model": (trace.manifest.get("info") or {}).get("model"), **found}


def _settings(before: Trace, after: Trace) -> dict[str, tuple[Any, Any]]:
    """Switches and the model's settings that differ; of the latter, those that both have."""
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
