"""Match a trace's overloads to kernels, replay its calls, and report coverage."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from enable.cover.needs import is_known, match_overloads, needs_kernel, overloads_of
from enable.naming import shown_path
from enable.trust import of_layers, untried
from generate.kernel_library import Library, Match
from generate.versions import BASE_LIBRARY, origin
from traces import jsonable
from traces.contents import REPLAYABLE
from traces.overloads import of_cpus
from traces.records import CallRecord
from traces.store import Trace
from verify.cases.case import Case, case_of
from verify.judging.dialect import lacking
from verify.judging.job import REPEATS, Job
from verify.judging.judge import Judge
from verify.judging.standings import Standing, Standings, evidence, marked
from verify.outcome import Outcome, Verdict

ALMOST_ALL = 99.9  # percent: the largest share if anything is missing
NO_KERNEL = "no kernel"  # the state of an overload that needs a kernel
_NO_KERNEL_NEEDED = {
    "view": "metadata only; the platform provides it",
    "memory": "allocation or transfer; the platform provides it",
    "random": "draws random numbers, and there is no law to judge them by",
}


@dataclass(frozen=True)
class Row:
    """The coverage of one overload in a trace.

    Attributes:
        calls: Number of calls.
        cases: Number of stored calls that were replayed.
        kernel: The kernel file, or None.
        outcome: PASS if every case passed, else the first other outcome. None if there is no kernel or none is needed.
        failing: Id of the failing case.
        again: Command that shows the failure.
        independent: Number of passed cases, from this trace or others, that differ in more than tensor contents.
        origin: Source of the kernel, as in `enable library list`.
    """

    JSON = (
        *("overload", "kind", "calls", "signatures", "cases", "kernel", "outcome", "detail", "failing", "again"),
        *("independent", "origin", "state", "verdict", "evidence", "of_cpus"),
    )
    overload: str
    kind: str
    calls: int
    signatures: int
    cases: int
    kernel: str | None
    outcome: Outcome | None
    detail: str
    refined: bool = False
    failing: str = ""
    again: str = ""
    independent: int | None = None
    origin: str | None = None

    @property
    def verdict(self) -> str:
        """Return the outcome, marked if it rests on few cases, or else the state."""
        return marked(self.outcome, self.independent) if self.outcome else self.state

    @property
    def evidence(self) -> str | None:
        """Return how well a pass is supported; None without a pass."""
        return evidence(self.outcome, self.independent)

    @property
    def of_cpus(self) -> bool:
        """Return True if accelerators never receive this overload."""
        return of_cpus(self.overload)

    @property
    def covered(self) -> bool:
        """Return True if every case passed."""
        return self.outcome is Outcome.PASS

    @property
    def state(self) -> str:
        """Return the outcome in one word, or why there is none."""
        return self.outcome or (NO_KERNEL if self.needs_kernel else "none needed")

    @property
    def needs_kernel(self) -> bool:
        """Return True if the overload needs a kernel."""
        return needs_kernel(self.overload, self.kind)


@dataclass(frozen=True)
class Coverage:
    """The coverage of one trace. `as_json` returns the output of `enable coverage --json`.

    Attributes:
        JSON: Fields that begin every JSON output of this kind.
        model: Model name.
        trace: Path of the trace.
        platform: Platform name.
        rows: One row per overload.
        opinfo: Overloads that OpInfo tests.
        instead: Command that records an accelerator's calls, if the trace holds CPU-only calls.
        host: Number of computing calls on the host beside the device, by overload. No device kernel serves these.
    """

    JSON = ("model", "trace", "platform")
    model: str
    trace: str
    platform: str
    rows: tuple[Row, ...]
    opinfo: frozenset[str]
    instead: str = ""
    host: Mapping[str, int] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Return the trace's name, which is unique among traces of a model, and the model's name if it differs."""
        name = Path(self.trace).name.removesuffix(".trace")
        return name if name == self.model else f"{name} ({self.model})"

    @property
    def compute(self) -> list[Row]:
        """Return the overloads that need a kernel: those that compute, and those whose random draws can be judged."""
        return [r for r in self.rows if r.needs_kernel]

    def with_hints(self, write: Callable[[str], str], again: Callable[[str, str], str]) -> Coverage:
        """Return the coverage with the commands of `write` for missing kernels, and of `again` for failing cases."""

        def hinted(row: Row) -> Row:
            if row.state == NO_KERNEL:
                return replace(row, detail=f"write one: {write(row.overload)}")
            return replace(row, again=again(row.overload, row.failing)) if row.failing else row

        return replace(self, rows=tuple(map(hinted, self.rows)))

    @property
    def of_cpus(self) -> list[Row]:
        """Return the overloads that need a kernel here but that accelerators never receive."""
        return [r for r in self.compute if r.of_cpus]

    def without_cpus(self) -> Coverage:
        """Return the coverage without the overloads that accelerators never receive."""
        return replace(self, rows=tuple(row for row in self.rows if not row.of_cpus))

    def failing(self) -> list[Row]:
        """Return the overloads that need a kernel and are not covered."""
        return [r for r in self.compute if not r.covered]

    @property
    def lost(self) -> dict[str, int]:
        """Return what the dialect lacks, with the number of overloads that need it."""
        return dict(Counter(filter(None, map(lacking, [row.detail for row in self.failing()]))).most_common())

    def as_json(self) -> dict[str, Any]:
        """Return the object that `enable coverage --json` prints."""
        covered = [r for r in self.compute if r.covered]
        matched = [r for r in self.compute if r.overload in self.opinfo]
        passed = [r for r in matched if r.covered]
        calls, covered_calls = (sum(r.calls for r in rows) for rows in (self.compute, covered))
        return {
            **jsonable(self),
            "overloads": {
                "compute": len(self.compute),
                "with_kernel": sum(r.kernel is not None for r in self.compute),
                "covered": len(covered),
                "percent": percent(len(self.compute), len(covered)),
            },
            "calls": {"total": calls, "covered": covered_calls, "percent": percent(calls, covered_calls)},
            "of_cpus": {"overloads": len(self.of_cpus), "calls": sum(r.calls for r in self.of_cpus)},
            "host": dict(self.host),
            "not_in_the_dialect": self.lost,
            "opinfo_subset": {
                "matched": len(matched),
                "passed_out_of_the_box": sum(not r.refined for r in passed),
                "passed_after_refinement": len(passed),
            },
            "rows": jsonable(self.rows),
        }


def percent(total: int, covered: int) -> float | None:
    """Return the share in percent, or None if the total is 0; only all of the total is 100 %."""
    if not total:
        return None
    return 100.0 if covered == total else min(round(100 * covered / total, 1), ALMOST_ALL)


@dataclass(frozen=True)
class Stored:
    """The stored calls of the overloads that need a kernel.

    Attributes:
        cases: Replayable calls by overload, without duplicates.
        lacking: Number of calls stored without values, by overload and level.
    """

    cases: dict[str, list[Case]]
    lacking: dict[str, Counter[str]]


def read_calls(
    trace: Trace,
    on_call: Callable[[CallRecord, str | None], None] = lambda record, case: None,
    only: Collection[str] | None = None,
) -> Stored:
    """Read once all calls in a trace that run on the device.

    Args:
        trace: The trace.
        on_call: Called with each call and the id of its case, or None.
        only: Overloads whose calls become cases; by default all that need a kernel.

    Returns:
        The cases, and the calls without values.
    """
    cases: dict[str, dict[str, Case]] = defaultdict(dict)
    lacking: dict[str, Counter[str]] = defaultdict(Counter)
    for record in trace.calls():
        if record.signature in trace.on_host:
            continue
        case = None
        is_needed = needs_kernel(record.overload, record.kind) and (only is None or record.overload in only)
        if is_needed and record.level in REPLAYABLE:
            case = case_of(trace, record)
            cases[record.overload].setdefault(case.id, case)
        elif is_needed:
            lacking[record.overload][record.level] += 1
        on_call(record, case.id if case else None)
    return Stored({overload: list(cases_by_id.values()) for overload, cases_by_id in cases.items()}, lacking)


def cases_by_overload(trace: Trace) -> dict[str, list[Case]]:
    """Return the replayable calls that need a kernel, without duplicates; contents are recorded or synthesized."""
    return read_calls(trace).cases


def measure(
    model: str,
    trace: Trace,
    library: Library,
    judge: Judge,
    progress: Callable[[int], Callable[[Job, Verdict], None]],
    opinfo: frozenset[str],
    only: Collection[str] | None = None,
) -> Coverage:
    """Judge every case of every overload that needs a kernel and has one. Known verdicts are reused.

    Args:
        model: Model name.
        trace: The trace.
        library: The kernels.
        judge: Judges the cases.
        progress: Called with the number of cases; returns a function to call with each verdict.
        opinfo: Overloads that OpInfo tests.
        only: Overloads to measure; all by default.

    Returns:
        The coverage.

    Raises:
        TraceError: The trace is damaged.
    """
    stored, matches = read_calls(trace, only=only), match_overloads(trace, library)
    verdicts = judge_cases(stored.cases, matches, judge, progress)
    rows = rows_of(trace, stored, matches, verdicts, judge.standings())
    rows = tuple(r for r in rows if only is None or r.overload in only)
    return Coverage(model, str(trace.path), judge.platform.name, rows, opinfo, host=host_calls(trace))


def host_calls(trace: Trace) -> dict[str, int]:
    """Return the number of calls on the host, beside the device, for each overload that computes."""
    calls = Counter[str]()
    for key in sorted(trace.on_host):
        signature = trace.signatures[key]
        if signature.computes:
            calls[signature.overload] += signature.calls
    return dict(calls.most_common())


def judge_cases(
    cases: dict[str, list[Case]],
    matches: dict[str, Match | None],
    judge: Judge,
    progress: Callable[[int], Callable[[Job, Verdict], None]],
    needed: Callable[[Job, str], bool] | None = None,
    on_verdict: Callable[[Job, Verdict], None] = lambda job, verdict: None,
    off: frozenset[str] = frozenset(),
) -> dict[tuple[str, str], Verdict]:
    """Judge cases and return the verdicts by (overload, case id).

    A pass becomes SKIPPED if the kernel was never tried in full (enable/trust.py).

    Args:
        cases: Cases by overload.
        matches: Kernel by overload.
        judge: Judges the cases.
        progress: Called with the number of cases; returns a function to call with each verdict.
        needed: Returns True if a case still has to be judged.
        on_verdict: Called with each verdict.
        off: Layers to skip.
    """
    jobs = [
        replace(m.job, cases=tuple(cases[o]), repeats=REPEATS, needed=needed, off=off)
        for o, m in matches.items()
        if m is not None and o in cases
    ]
    advance = progress(sum(len(job.cases) for job in jobs))

    def both(job: Job, verdict: Verdict) -> None:
        on_verdict(job, verdict)
        advance(job, verdict)

    verdicts = judge.judge(jobs, both)
    layered = {o: m for o, m in matches.items() if m is not None and o in cases and of_layers(m)}
    standings = judge.standings() if layered else Standings()
    objections = {o: untried(m, standings) for o, m in layered.items()}
    for (overload, case), verdict in verdicts.items():
        if objections.get(overload) and verdict.outcome is Outcome.PASS:
            verdicts[overload, case] = replace(verdict, outcome=Outcome.SKIPPED, detail=objections[overload])
    return verdicts


def rows_of(
    trace: Trace,
    stored: Stored,
    matches: dict[str, Match | None],
    verdicts: dict[tuple[str, str], Verdict],
    standings: Standings,
) -> tuple[Row, ...]:
    """Return a row for each overload in a trace; `standings` are the kernels' verdicts over all traces."""
    cases, lacking = stored.cases, stored.lacking
    rows = []
    for o, kind in overloads_of(trace):
        row, match = _unjudged(o, kind, trace, matches.get(o)), matches.get(o)
        if match is not None:
            case_verdicts = [verdicts.get((o, c.id)) for c in cases.get(o, [])]
            standing = standings[match.kernels, o]
            row = _judged(row, match, case_verdicts, lacking.get(o, Counter()), standing)
        rows.append(row)
    return tuple(rows)


def _unjudged(overload: str, kind: str, trace: Trace, match: Match | None) -> Row:
    """Return a row without the kernel's verdicts."""
    signatures = [s for s in trace.asked if (s.overload, s.kind) == (overload, kind)]
    calls = sum(s.calls for s in signatures)
    if not needs_kernel(overload, kind):
        return Row(overload, kind, calls, len(signatures), 0, None, None, _NO_KERNEL_NEEDED[kind])
    if not is_known(overload):
        detail = "not an ATen operator of this torch: there is no reference to judge a kernel by"
        return Row(overload, kind, calls, len(signatures), 0, None, Outcome.SKIPPED, detail)
    if match is None:
        return Row(overload, kind, calls, len(signatures), 0, None, None, NO_KERNEL)
    path = shown_path(match.kernel.path)
    source = origin(match.kernel.path) if match.refined else BASE_LIBRARY
    row = Row(overload, kind, calls, len(signatures), 0, path, Outcome.SKIPPED, "", match.refined)
    return replace(row, origin=source)


def _judged(row: Row, match: Match, verdicts: list[Verdict | None], lacking: Counter[str], known: Standing) -> Row:
    """Return the row with the kernel's verdicts."""
    outcome, detail = _summary(verdicts, lacking)
    failing = next((v.case for v in verdicts if v is not None and v.failed), "")
    elsewhere = f"not served, {known.failure}" if known.failed and outcome is Outcome.PASS else ""
    derived = "" if match.plan.direct else f"from {match.plan.base}"
    return replace(
        row,
        cases=len(verdicts),
        outcome=outcome,
        detail="; ".join(filter(None, [derived, detail, elsewhere])),
        failing=failing,
        independent=known.independent,
    )


def _summary(verdicts: list[Verdict | None], lacking: Counter[str]) -> tuple[Outcome, str]:
    """Return PASS only if there are cases and all pass; `lacking` counts stored calls without values, by level."""
    levels = ", ".join(sorted(lacking))
    if not verdicts:
        return Outcome.SKIPPED, f"values not recorded ({levels})" if lacking else "no stored call to replay"
    failed = [v for v in verdicts if v is not None and v.outcome is not Outcome.PASS]
    if failed:
        failed.sort(key=lambda v: not v.failed)
        return failed[0].outcome, f"{len(failed)} of {len(verdicts)} cases: {failed[0].detail}"
    if None in verdicts:
        return Outcome.SKIPPED, f"{verdicts.count(None)} of {len(verdicts)} cases were not run"
    missing = lacking.total()
    return Outcome.PASS, f"values of {missing} more stored calls not recorded ({levels})" if missing else ""
