"""Read the cases of all traces in a workspace, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from enable.cover.coverage import read_calls
from enable.cover.needs import is_known
from enable.cover.opinfo import is_opinfo
from enable.workspace import Workspace
from traces import TraceError, UserError
from traces.format import MANIFEST
from traces.store import Trace
from verify.cases.case import Case


@dataclass(frozen=True)
class Recorded:
    """The cases of a workspace.

    Attributes:
        cases: Cases of ATen's overloads and of subgraphs, without duplicates.
        traces: Names of the traces that were read.
        unread: The other traces, with the reason.
        of_opinfo: Ids of the cases that only OpInfo's traces contain.
    """

    cases: tuple[Case, ...]
    traces: tuple[str, ...]
    unread: Mapping[str, str]
    of_opinfo: frozenset[str] = frozenset()

    def cases_of(self, overload: str) -> tuple[list[Case], list[Case]]:
        """Return an overload's cases: those of models, and those that only OpInfo's traces contain."""
        matching = [case for case in self.cases if case.overload == overload]
        return [c for c in matching if c.id not in self.of_opinfo], [c for c in matching if c.id in self.of_opinfo]


def recorded(workspace: Workspace, only: frozenset[str] | None = None) -> Recorded:
    """Return the cases in all traces of the workspace; damaged or incomplete traces are skipped, with the reason.

    `only` names overloads to look for; traces that do not call them are not read.
    """
    paths = [workspace.trace_path(name) for name in workspace.trace_names()]
    of_traces = _read(tuple((path, _changed(path)) for path in paths), only)
    fused, unread = _fused(workspace, only)
    return replace(of_traces, cases=(*of_traces.cases, *fused), unread={**of_traces.unread, **unread})


def _fused(workspace: Workspace, only: frozenset[str] | None) -> tuple[list[Case], dict[str, str]]:
    """Return the recorded calls of subgraphs, and the traces that could not be read, with the reason."""
    cases, unread = [], {}
    for overload, fusion in workspace.fusions().items():
        for trace in dict.fromkeys(use.trace for use in fusion.uses) if only is None or overload in only else ():
            try:
                cases += list(fusion.cases(workspace.open_trace, trace))
            except (UserError, TraceError) as error:
                unread[trace] = str(error)
    return cases, unread


def _changed(path: Path) -> int:
    """Return the modification time of a trace's manifest, or 0."""
    manifest = path / MANIFEST
    return manifest.stat().st_mtime_ns if manifest.is_file() else 0


@lru_cache(maxsize=1)
def _read(traces: tuple[tuple[Path, int], ...], only: frozenset[str] | None) -> Recorded:
    """Read traces given as (directory, modification time); the time makes the cache miss after a change."""
    cases_by_id: dict[str, Case] = {}
    read, unread = [], {}
    of_models: set[str] = set()
    for path, _ in traces:
        name = path.name.removesuffix(".trace")
        try:
            trace = Trace.open(path)
            cases = read_calls(trace, only=only).cases if _calls(trace, only) else {}
        except (UserError, TraceError) as error:
            unread[name] = str(error)
            continue
        read.append(name)
        for overload, calls in cases.items():
            cases_by_id |= {case.id: case for case in calls if is_known(overload)}
        if not is_opinfo(trace):
            of_models.update(case.id for calls in cases.values() for case in calls)
    return Recorded(tuple(cases_by_id.values()), tuple(read), unread, frozenset(cases_by_id.keys() - of_models))


def _calls(trace: Trace, only: frozenset[str] | None) -> bool:
    """Return True if the trace calls one of the overloads."""
    return only is None or any(s.overload in only for s in trace.signatures.values())
