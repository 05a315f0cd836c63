"""Match a trace's overloads to kernels, replay its calls, and say what is covered."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from enable.naming import shown_path
from enable.trust import of_layers, untried
from generate.kernel_library import Library, Match
from generate.versions import BASE_LIBRARY, origin
from traces import UserError, jsonable
from traces.contents import REPLAYABLE
from traces.overloads import of_cpus, resolve
from traces.records import CallRecord
from traces.store import Trace
from traces.subgraphs import subgraph_of
from verify.cases.case import Case, case_of
from verify.comparison.laws import judged_by
from verify.contract.derive import functional_base
from verify.judging.job import REPEATS, Job
from verify.judging.judge import Judge
from verify.judging.standings import Standing, Standings, marked
from verify.outcome import Outcome, Verdict

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
    or none is needed. failing: id of that case. again: what to type to see what failed. independent: of all cases that
    the kernel is known to have passed, of this trace or not, how many differ in more than the contents of tensors.
    origin: where the kernel comes from, as `enable library list` tells it.
    """

    JSON = (
        *("overload", "kind", "calls", "signatures", "cases", "kernel", "outcome", "detail", "failing", "again"),
        *("independent", "origin", "state", "verdict", "of_cpus"),
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
        """The outcome, marked where it rests on few cases; else the state."""
        return marked(self.outcome, self.independent) if self.outcome else self.state

    @property
    def of_cpus(self) -> bool:
        """Whether no accelerator is ever asked for it."""
        return of_cpus(self.overload)

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
    """The coverage of one trace; `as_json` is what `enable coverage --json` prints, and `JSON` how such outputs begin.

    instead: what to type to record what an accelerator is asked for, where the trace holds calls for CPUs alone.
    host: calls by overload of what computes on the host beside the device, which no kernel of the device serves.
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
        """The trace's name, which tells it from others of the same model, and the model's where that is another."""
        name = Path(self.trace).name.removesuffix(".trace")
        return name if name == self.model else f"{name} ({self.model})"

    @property
    def compute(self) -> list[Row]:
        """The overloads that need a kernel: those that compute, and those that draw as can be judged."""
        return [r for r in self.rows if r.needs_kernel]

    def with_hints(self, write: Callable[[str], str], again: Callable[[str, str], str]) -> Coverage:
        """The same, with what to type. write: for an overload without a kernel; again: for one and its failing case."""

        def hinted(row: Row) -> Row:
            if row.state == NO_KERNEL:
                return replace(row, detail=f"write one: {write(row.overload)}")
            return replace(row, again=again(row.overload, row.failing)) if row.failing else row

        return replace(self, rows=tuple(map(hinted, self.rows)))

    @property
    def of_cpus(self) -> list[Row]:
        """The overloads that need a kernel here, and that no accelerator is ever asked for."""
        return [r for r in self.compute if r.of_cpus]

    def failing(self) -> list[Row]:
        """Overloads that need a kernel and are not covered."""
        return [r for r in self.compute if not r.covered]

    def as_json(self) -> dict[str, Any]:
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
            "opinfo_subset": {
                "matched": len(matched),
                "passed_out_of_the_box": sum(not r.refined for r in passed),
                "passed_after_refinement": len(passed),
            },
            "rows": jsonable(self.rows),
        }


def percent(total: int, covered: int) -> float | None:
    """The share in percent; None of nothing."""
    return round(100 * covered / total, 1) if total else None


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
    """Read all calls of a trace that the device is asked for, once. told: of each call, with the id of its case if it
    is one. only: overloads whose calls are cases, all that need a kernel by default."""
    cases: dict[str, dict[str, Case]] = defaultdict(dict)
    lacking: dict[str, Counter[str]] = defaultdict(Counter)
    for record in trace.calls():
        if record.signature in trace.on_host:
            continue
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
    verdicts = judge_cases(stored.cases, matches, judge, progress)
    rows = rows_of(trace, stored, matches, verdicts, judge.standings())
    rows = tuple(r for r in rows if only is None or r.overload in only)
    return Coverage(model, str(trace.path), judge.platform.name, rows, opinfo, host=host_calls(trace))


def host_calls(trace: Trace) -> dict[str, int]:
    """Return how often each overload that computes was called on the host, beside the device."""
    calls = Counter[str]()
    for key in sorted(trace.on_host):
        signature = trace.signatures[key]
        if signature.computes:
            calls[signature.overload] += signature.calls
    return dict(calls.most_common())


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
    """Verdicts by (overload, case id). needed: whether a case is still to be judged; told: of each verdict; off: layers
    that are not asked.

    Cases that a kernel passes are skipped if it was never tried in full (enable/trust.py).
    """
    jobs = [
        replace(m.job, cases=tuple(cases[o]), repeats=REPEATS, needed=needed, off=off)
        for o, m in matches.items()
        if m is not None and o in cases
    ]
    advance = progress(sum(len(job.cases) for job in jobs))

    def both(job: Job, verdict: Verdict) -> None:
        told(job, verdict)
        advance(job, verdict)

    verdicts = judge.judge(jobs, both)
    layered = {o: m for o, m in matches.items() if m is not None and o in cases and of_layers(m)}
    standings = judge.standings() if layered else Standings()
    why = {o: untried(m, standings) for o, m in layered.items()}
    for (overload, case), verdict in verdicts.items():
        if why.get(overload) and verdict.outcome is Outcome.PASS:
            verdicts[overload, case] = replace(verdict, outcome=Outcome.SKIPPED, detail=why[overload])
    return verdicts


def rows_of(
    trace: Trace,
    stored: Stored,
    matches: dict[str, Match | None],
    verdicts: dict[tuple[str, str], Verdict],
    standings: Standings,
) -> tuple[Row, ...]:
    """A row for each overload of a trace. standings: what is known of kernels, of this trace's cases and of others."""
    cases, lacking = stored.cases, stored.lacking
    rows = []
    for o, kind in _overloads(trace):
        row, match = _unjudged(o, kind, trace, matches.get(o)), matches.get(o)
        if match is not None:
            found = [verdicts.get((o, c.id)) for c in cases.get(o, [])]
            known = standings[match.kernels, o]
            row = _judged(row, match, found, lacking.get(o, Counter()), known)
        rows.append(row)
    return tuple(rows)


def needs_kernel(overload: str, kind: str) -> bool:
    """Whether calls of an overload, which are of this kind, are for kernels: they compute, or draw as can be judged."""
    return kind == "compute" or (kind == "random" and is_known(overload) and bool(judged_by(overload)))


def is_known(overload: str) -> bool:
    """Whether this torch has the overload, as its own or as a subgraph of such: a user's custom operators have no
    reference here."""
    try:
        resolve(overload)
    except UserError:
        return False
    return overload.startswith("aten::") or subgraph_of(overload) is not None


def _overloads(trace: Trace) -> list[tuple[str, str]]:
    """(overload, kind) of a trace, compute first, the most called first."""
    calls: dict[tuple[str, str], int] = defaultdict(int)
    for signature in trace.asked:
        calls[signature.overload, signature.kind] += signature.calls
    kinds = ["compute", "random", "memory", "view"]
    return sorted(calls, key=lambda k: (kinds.index(k[1]), -calls[k], k[0]))


def _unjudged(overload: str, kind: str, trace: Trace, match: Match | None) -> Row:
    """A row without what is known of the kernel."""
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
    outcome, detail = _summary(verdicts, lacking)
    failing = next((v.case for v in verdicts if v is not None and v.failed), "")
    others = f"not served, {known.failure}" if known.failed and outcome is Outcome.PASS else ""
    derived = "" if match.plan.direct else f"from {match.plan.base}"
    return replace(
        row,
        cases=len(verdicts),
        outcome=outcome,
        detail="; ".join(filter(None, [derived, detail, others])),
        failing=failing,
        independent=known.independent,
    )


def _summary(verdicts: list[Verdict | None], lacking: Counter[str]) -> tuple[Outcome, str]:
    """PASS only if there are cases and all pass. lacking: stored calls that cannot be replayed, by level."""
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
