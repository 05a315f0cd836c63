"""The cases of all traces of a workspace, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from enable.coverage import cases_by_overload, is_known
from enable.workspace import Workspace
from traces import TraceError, UserError
from traces.format import MANIFEST
from traces.store import Trace
from verify.cases import Case


@dataclass(frozen=True)
class Recorded:
    """cases: of ATen's overloads, each once. traces: names of those read. unread: names of the others, and why."""

    cases: tuple[Case, ...]
    traces: tuple[str, ...]
    unread: Mapping[str, str]


def recorded(workspace: Workspace) -> Recorded:
    """What every trace of the workspace holds now; a trace that is damaged or not complete is left out, with reason."""
    paths = [workspace.trace_path(name) for name in workspace.trace_names()]
    return _read(tuple((path, _changed(path)) for path in paths))


def _changed(path: Path) -> int:
    manifest = path / MANIFEST
    return manifest.stat().st_mtime_ns if manifest.is_file() else 0


@lru_cache(maxsize=1)
def _read(traces: tuple[tuple[Path, int], ...]) -> Recorded:
    """traces: directories, and when each was last changed."""
    found: dict[str, Case] = {}
    read, unread = [], {}
    for path, _ in traces:
        name = path.name.removesuffix(".trace")
        try:
            cases = cases_by_overload(Trace.open(path))
        except (UserError, TraceError) as error:
            unread[name] = str(error)
            continue
        read.append(name)
        for overload, several in cases.items():
            found |= {case.id: case for case in several if is_known(overload)}
    return Recorded(tuple(found.values()), tuple(read), unread)
