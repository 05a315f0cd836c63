"""Compute the coverage of a workspace's traces from the verdicts that are stored so far, without judging anything."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from enable.cover.coverage import Coverage, Row, Stored, read_calls, rows_of
from enable.cover.needs import match_overloads
from enable.cover.session import Session, model_of
from enable.report.reasons import NOT_RUN, reason
from enable.report.stamps import FileCache, stamp_of
from enable.trust import of_layers, untried
from enable.workspace import Workspace
from generate.kernel_library import Library, Match, kernel_files
from traces import UserError
from traces.format import MANIFEST
from traces.store import Trace
from verify.judging.standings import Standings
from verify.judging.verdict_reader import VerdictReader
from verify.outcome import Outcome, Verdict

Rows = list[dict[str, Any]]


class LiveCoverage:
    """The coverage of traces on one platform. Traces, kernels and verdicts are read again when they change."""

    def __init__(self, workspace: Workspace, base: Path | None, platform: str, traces: Sequence[str]) -> None:
        """Load the platform and the library.

        Args:
            workspace: The workspace.
            base: Directory of the base library, or None for the packaged one.
            platform: Platform name or file.
            traces: Trace names; without any, all traces in the workspace at the time of a reading.

        Raises:
            UserError: The platform or a trace does not exist, or the library is broken.
        """
        self._workspace = workspace
        self._session = Session(workspace, base, platform)  # not entered, so it has no judge and no children
        self._named = [workspace.open_trace(name).path for name in dict.fromkeys(traces)]
        self._traces, self._standings = FileCache[tuple[Trace, Stored]](), FileCache[Standings]()
        self._libraries, self._results = FileCache[Library](), FileCache[tuple[dict[str, Any], Rows]]()

    def read(self) -> tuple[list[str], Rows, Rows]:
        """Return problems, a row for each trace, and a row for each overload of each trace."""
        problems: list[str] = []
        models: Rows = []
        overloads: Rows = []
        kernels = stamp_of(file for layer in self._session.library.layers for file in kernel_files(layer))
        store = self._workspace.verdict_file
        verdicts = stamp_of([store, store.with_name(f"{store.name}-wal")])
        library = self._libraries.get("library", kernels, self._session.reload_library)
        standings = self._standings.get("standings", verdicts, partial(self._read_standings, store))
        for path in self._named or sorted(self._workspace.traces.glob("*.trace")):
            recorded = stamp_of([path / MANIFEST])
            try:
                trace, stored = self._traces.get(path, recorded, partial(_read_trace, path))
                measure = partial(_measured, trace, stored, library, standings)
                model, rows = self._results.get(path, (recorded, kernels, verdicts), measure)
            except UserError as error:  # for example a recording that is not finished
                problems.append(" ".join(str(error).split("\n")))
                continue
            models.append(model)
            overloads += rows
        return problems, models, overloads

    def _read_standings(self, store: Path) -> Standings:
        """Return the kernels' standings by the stored verdicts; empty before the first verdict.

        Raises:
            UserError: The store is damaged.
        """
        platform = self._session.platform
        standings = Standings()
        if store.exists():
            reader = VerdictReader(store)
            try:
                standings = reader.standings(platform) if reader.is_current else standings
            finally:
                reader.close()
        standings.platform, standings.platform_typed = platform.name, platform.typed
        return standings


def _read_trace(path: Path) -> tuple[Trace, Stored]:
    """Return a trace and its stored calls."""
    trace = Trace.open(path)
    return trace, read_calls(trace)


def _measured(trace: Trace, stored: Stored, library: Library, standings: Standings) -> tuple[dict[str, Any], Rows]:
    """Return a trace's row, and a row for each of its overloads that needs a kernel."""
    matches = match_overloads(trace, library)
    verdicts = {
        (overload, case.id): verdict
        for overload, match in matches.items()
        if match is not None
        for case in stored.cases.get(overload, ())
        if (verdict := _verdict(match, overload, case.id, standings)) is not None
    }
    coverage = Coverage(
        model_of(trace),
        str(trace.path),
        standings.platform,
        rows_of(trace, stored, matches, verdicts, standings),
        frozenset(),
    ).without_cpus()
    name = trace.path.name.removesuffix(".trace")
    rows = [_overload(name, row, coverage, verdicts, stored) for row in coverage.compute]
    rows.sort(key=lambda row: (not row["failing"], row["state"] == Outcome.PASS, row["overload"]))
    totals = coverage.as_json()
    counts = {key: sum(row[key] for row in rows) for key in ("cases", "judged", "failing")}
    shares = {key: totals[key] for key in ("overloads", "calls")}
    return {"trace": name, "platform": standings.platform, **shares, **counts}, rows


def _verdict(match: Match, overload: str, case: str, standings: Standings) -> Verdict | None:
    """Return the stored verdict on a case, or None; a pass counts as in `enable coverage` (enable/trust.py)."""
    standing = standings[match.kernels, overload]
    if case in standing.failed:
        return standing.failed[case]
    if case not in standing.passed:
        return None
    objection = untried(match, standings) if of_layers(match) else ""
    return Verdict(case, Outcome.SKIPPED if objection else Outcome.PASS, objection)


def _overload(
    trace: str, row: Row, coverage: Coverage, verdicts: dict[tuple[str, str], Verdict], stored: Stored
) -> dict[str, Any]:
    """Return the table row for an overload."""
    cases = stored.cases.get(row.overload, []) if row.kernel else []
    judged = [v for case in cases if (v := verdicts.get((row.overload, case.id))) is not None]
    failing = sum(verdict.failed for verdict in judged)
    state = row.state if failing or len(judged) == len(cases) else NOT_RUN  # not all cases are judged yet
    return {
        "overload": row.overload,
        "trace": trace,
        "platform": coverage.platform,
        "state": state,
        "cases": len(cases),
        "judged": len(judged),
        "failing": failing,
        "evidence": row.evidence if state == row.state else None,
        "reason": "" if state == NOT_RUN else reason(state, row.detail, row.independent),
    }
