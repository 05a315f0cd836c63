"""Match a trace's overloads to kernels, replay its calls, and say what is covered."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from generate.library import Library, Match
from traces import UserError
from traces.contents import REPLAYABLE
from traces.overloads import resolve
from traces.store import CallRecord, Trace
from verify.cases import Case, case_of
from verify.derive import functional_base
from verify.judge import Job, Judge
from verify.outcome import Outcome, Verdict
from verify.random_laws import judged_by

NO_KERNEL = "no kernel"  # the state of an overload that needs one
_NO_KERNEL_NEEDED = {
    "view": "metadata only; the platform provides it",
    "memory": "allocation or transfer; the platform provides it",
    "random": "draws random numbers, and there is no law to judge them by",
}


@dataclass(frozen=True)
class Row:
    """One overload of a trace. calls: how often it was called; cases: stored calls that were replayed.

    outcome: PASS if every case passed, else the outcome of the first case that did not; None where there is no kernel,
    or none is needed.
    """

    overload: str
    kind: str
    calls: int
    signatures: int
    cases: int
    kernel: str | None
    outcome: Outcome | None
    detail: str
    refined: bool = False

    @property
    def covered(self) -> bool:
        return self.outcome is Outcome.PASS

    @property
    def state(self) -> str:
        """The outcome in a word, or why there is none."""
        return self.outcome or (NO_KERNEL if self.needs_kernel else "none needed")

    @property
    def needs_kernel(self) -> bool:
        return needs_kernel(self.overload, self.kind)


@dataclass(frozen=True)
class Coverage:
    """The coverage of one trace; `as_json` is what `enable coverage --json` prints."""

    model: str
    trace: str
    platform: str
    rows: tuple[Row, ...]
    opinfo: frozenset[str]

    @property
    def compute(self) -> list[Row]:
        """The overloads that need a kernel: those that compute, and those that draw as can be judged."""
        return [r for r in self.rows if r.needs_kernel]

    def with_hints(self, command: Callable[[str], str]) -> Coverage:
        """The same, with what to type for each missing kernel. command: of an overload."""

        def hinted(row: Row) -> Row:
            return replace(row, detail=f"write one: {command(row.overload)}") if row.state == NO_KERNEL else row

        return replace(self, rows=tuple(map(hinted, self.rows)))

    def failing(self) -> list[Row]:
        """Overloads that need a kernel and are not covered."""
        return [r for r in self.compute if not r.covered]

    def as_json(self) -> dict[str, Any]:
        covered = [r for r in self.compute if r.covered]
        matched = [r for r in self.compute if r.overload in self.opinfo]
        passed = [r for r in matched if r.covered]
        calls, covered_calls = (sum(r.calls for r in rows) for rows in (self.compute, covered))
        rows = [{**{k: v for k, v in asdict(row).items() if k != "refined"}, "state": row.state} for row in self.rows]
        return {
            "model": self.model,
            "trace": self.trace,
            "platform": self.platform,
            "overloads": {
                "compute": len(self.compute),
                "covered": len(covered),
                "percent": percent(len(self.compute), len(covered)),
            },
            "calls": {"total": calls, "covered": covered_calls, "percent": percent(calls, covered_calls)},
            "opinfo_subset": {
                "matched": len(matched),
                "passed_out_of_the_box": sum(not r.refined for r in passed),
                "passed_after_refinement": len(passed),
            },
            "rows": rows,
        }


def percent(total: int, covered: int) -> float:
    """The share that is covered, of nothing all."""
    return round(100 * covered / total, 1) if total else 100.0


@dataclass(frozen=True)
class Stored:
    """What a trace holds of the overloads that need a kernel. cases: the replayable calls of each, each once.

    lacking: how many stored calls of each were stored without values, by level.
    """

    cases: dict[str, list[Case]]
    lacking: dict[str, Counter[str]]


def read_calls(
    trace: Trace,
    told: Callable[[CallRecord, str | None], None] = lambda record, case: None,
    only: Collection[str] | None = None,
) -> Stored:
    """Read all calls of a trace, once. told: of each call, with the id of its case if it is one. only: overloads whose
    calls are cases, all that need a kernel by default."""
    cases: dict[str, dict[str, Case]] = defaultdict(dict)
    lacking: dict[str, Counter[str]] = defaultdict(Counter)
    for record in trace.calls():
        case = None
        wanted = needs_kernel(record.overload, record.kind) and (only is None or record.overload in only)
        if wanted and record.level in REPLAYABLE:
            case = case_of(trace, record)
            cases[record.overload].setdefault(case.id, case)
        elif wanted:
            lacking[record.overload][record.level] += 1
        told(record, case.id if case else None)
    return Stored({overload: list(found.values()) for overload, found in cases.items()}, lacking)


def cases_by_overload(trace: Trace) -> dict[str, list[Case]]:
    """The replayable calls of a trace, each once: of what needs a kernel, contents held or synthesised."""
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
    """Judge every case of every overload that needs a kernel and has one. Verdicts already known are not run again.

    progress: given the number of cases, returns what to call as each verdict arrives. opinfo: overloads that OpInfo
    tests. only: the overloads to look at, all by default. Raises TraceError on a damaged trace.
    """
    stored, matches = read_calls(trace, only=only), match_overloads(trace, library)
    rows = rows_of(trace, stored, matches, judge_cases(stored.cases, matches, judge, progress))
    rows = tuple(r for r in rows if only is None or r.overload in only)
    return Coverage(model, str(trace.path), judge.platform.name, rows, opinfo)


def needed_overloads(trace: Trace) -> frozenset[str]:
    """The overloads of a trace that need a kernel, and those whose kernels these derive from."""
    found = [o for o, kind in _overloads(trace) if needs_kernel(o, kind)]
    return frozenset((*found, *(functional_base(o) for o in found if is_known(o))))


def match_overloads(trace: Trace, library: Library) -> dict[str, Match | None]:
    """The kernel of each overload of a trace that needs one and that this torch has; None where there is none."""
    return {o: library.match(o) for o, kind in _overloads(trace) if needs_kernel(o, kind) and is_known(o)}


def judge_cases(
    cases: dict[str, list[Case]],
    matches: dict[str, Match | None],
    judge: Judge,
    progress: Callable[[int], Callable[[Job, Verdict], None]],
    needed: Callable[[Job, str], bool] | None = None,
    told: Callable[[Job, Verdict], None] = lambda job, verdict: None,
    off: frozenset[str] = frozenset(),
) -> dict[tuple[str, str], Verdict]:
    """Verdicts by (overload, case id). needed: whether a case is still to be judged; told: of each verdict;
    off: layers that are not asked."""
    jobs = [
        Job(m.plan, m.kernel, tuple(cases[o]), m.copy, needed=needed, off=off)
        for o, m in matches.items()
        if m is not None and o in cases
    ]
    advance = progress(sum(len(job.cases) for job in jobs))

    def both(job: Job, verdict: Verdict) -> None:
        told(job, verdict)
        advance(job, verdict)

    return judge.judge(jobs, both)


def rows_of(
    trace: Trace,
    stored: Stored,
    matches: dict[str, Match | None],
    verdicts: dict[tuple[str, str], Verdict],
) -> tuple[Row, ...]:
    """A row for each overload of a trace."""
    cases, lacking = stored.cases, stored.lacking
    found: dict[str, list[Verdict | None]] = {
        o: [verdicts.get((o, c.id)) for c in cases.get(o, [])] for o, m in matches.items() if m is not None
    }
    return tuple(
        _row(o, kind, trace, matches.get(o), found.get(o, []), lacking.get(o, Counter()))
        for o, kind in _overloads(trace)
    )


def needs_kernel(overload: str, kind: str) -> bool:
    """Whether calls of an overload, which are of this kind, are for kernels: they compute, or draw as can be judged."""
    return kind == "compute" or (kind == "random" and is_known(overload) and bool(judged_by(overload)))


def is_known(overload: str) -> bool:
    """Whether this torch has the overload, as its own: a user's custom operators have no reference here."""
    try:
        resolve(overload)
    except UserError:
        return False
    return overload.startswith("aten::")


def _overloads(trace: Trace) -> list[tuple[str, str]]:
    """(overload, kind) of a trace, compute first, the most called first."""
    calls: dict[tuple[str, str], int] = defaultdict(int)
    for signature in trace.signatures.values():
        calls[signature.overload, signature.kind] += signature.calls
    kinds = ["compute", "random", "memory", "view"]
    return sorted(calls, key=lambda k: (kinds.index(k[1]), -calls[k], k[0]))


def _row(
    overload: str, kind: str, trace: Trace, match: Match | None, verdicts: list[Verdict | None], lacking: Counter[str]
) -> Row:
    signatures = [s for s in trace.signatures.values() if (s.overload, s.kind) == (overload, kind)]
    calls = sum(s.calls for s in signatures)
    if not needs_kernel(overload, kind):
        return Row(overload, kind, calls, len(signatures), 0, None, None, _NO_KERNEL_NEEDED[kind])
    if not is_known(overload):
        detail = "not an ATen operator of this torch: there is no reference to judge a kernel by"
        return Row(overload, kind, calls, len(signatures), 0, None, Outcome.SKIPPED, detail)
    if match is None:
        return Row(overload, kind, calls, len(signatures), 0, None, None, NO_KERNEL)
    outcome, detail = _summary(verdicts, lacking)
    if not match.plan.direct:
        detail = "; ".join(filter(None, [f"from {match.plan.base}", detail]))
    path = shown_path(match.kernel.path)
    return Row(overload, kind, calls, len(signatures), len(verdicts), path, outcome, detail, match.refined)


def _summary(verdicts: list[Verdict | None], lacking: Counter[str]) -> tuple[Outcome, str]:
    """PASS only if there are cases and all pass. lacking: stored calls that cannot be replayed, by level."""
    levels = ", ".join(sorted(lacking))
    if not verdicts:
        return Outcome.SKIPPED, f"values not recorded ({levels})" if lacking else "no stored call to replay"
    failed = [v for v in verdicts if v is not None and v.outcome is not Outcome.PASS]
    if failed:
        return failed[0].outcome, f"{len(failed)} of {len(verdicts)} cases: {failed[0].detail}"
    if None in verdicts:
        return Outcome.SKIPPED, f"{verdicts.count(None)} of {len(verdicts)} cases were not run"
    missing = lacking.total()
    return Outcome.PASS, f"values of {missing} more stored calls not recorded ({levels})" if missing else ""


def shown_path(path: Path) -> str:
    """A kernel file as tables show it: packaged files from `generate/` on, others as they are."""
    package = Path(__file__).parents[1]
    return str(path.relative_to(package)) if path.is_relative_to(package / "generate") else str(path)
