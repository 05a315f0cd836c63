"""The cases of all traces of a workspace, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from enable.cover.coverage import is_known, read_calls
from enable.cover.opinfo import is_opinfo
from enable.workspace import Workspace
from traces import TraceError, UserError
from traces.format import MANIFEST
from traces.store import Trace
from verify.cases.case import Case


@dataclass(frozen=True)
class Recorded:
    """cases: of ATen's overloads, each once. traces: names of those read. unread: names of the others, and why.

    of_opinfo: ids of the cases that no other trace has than OpInfo's.
    """

    cases: tuple[Case, ...]
    traces: tuple[str, ...]
    unread: Mapping[str, str]
    of_opinfo: frozenset[str] = frozenset()

    def cases_of(self, overload: str) -> tuple[list[Case], list[Case]]:
        """The cases of an overload: those of models, and those that only OpInfo's traces have."""
        found = [case for case in self.cases if case.overload == overload]
        return [c for c in found if c.id not in self.of_opinfo], [c for c in found if c.id in self.of_opinfo]


def recorded(workspace: Workspace, only: frozenset[str] | None = None) -> Recorded:
    """What every trace of the workspace holds now; a trace that is damaged or not complete is left out, with reason.

    only: overloads to look for; traces without a call of them are not read.
    """
    paths = [workspace.trace_path(name) for name in workspace.trace_names()]
    found = _read(tuple((path, _changed(path)) for path in paths), only)
    fused, unread = _fused(workspace, only)
    return replace(found, cases=(*found.cases, *fused), unread={**found.unread, **unread})


def _fused(workspace: Workspace, only: frozenset[str] | None) -> tuple[list[Case], dict[str, str]]:
    """The recorded calls of subgraphs, and the traces of which they cannot be had, and why."""
    cases, unread = [], {}
    for overload, fusion in workspace.fusions().items():
        for trace in dict.fromkeys(use.trace for use in fusion.uses) if only is None or overload in only else ():
            try:
                cases += list(fusion.cases(workspace.open_trace, trace))
            except (UserError, TraceError) as error:
                unread[trace] = str(error)
    return cases, unread


def _changed(path: Path) -> int:
    manifest = path / MANIFEST
    return manifest.stat().st_mtime_ns if manifest.is_file() else 0


@lru_cache(maxsize=1)
def _read(traces: tuple[tuple[Path, int], ...], only: frozenset[str] | None) -> Recorded:
    """traces: directories, and when each was last changed."""
    found: dict[str, Case] = {}
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
        for overload, several in cases.items():
            found |= {case.id: case for case in several if is_known(overload)}
        if not is_opinfo(trace):
            of_models.update(case.id for several in cases.values() for case in several)
    return Recorded(tuple(found.values()), tuple(read), unread, frozenset(found.keys() - of_models))


def _calls(trace: Trace, only: frozenset[str] | None) -> bool:
    return only is None or any(s.overload in only for s in trace.signatures.values())
