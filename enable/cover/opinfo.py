"""Measure the coverage of an OpInfo trace: an operator is covered if every leaf call in all its samples passes.

Operators that draw random numbers are counted separately; their drawing calls are judged by laws.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from enable.cover.coverage import NO_KERNEL, Coverage, judge_cases, percent, read_calls, rows_of
from enable.cover.needs import match_overloads, needs_kernel
from enable.tables import share, table
from enable.terminal import summary_line
from generate.kernel_library import Library
from traces import TraceError
from traces.records import CallRecord
from traces.store import Trace
from verify.cases.case import Case
from verify.judging.judge import Job, Judge
from verify.outcome import Outcome, Verdict

Key = tuple[str, str]  # overload and case id
NO_LAW = "no law to judge it by"
CATEGORIES = (
    "Elementwise", "Deep Learning", "Linear Algebra", "Other", "Shape Manipulation", "Reduction",
    "Indexing & Selection",
)  # fmt: skip


@dataclass
class TestedOperator:
    """One OpInfo operator with all its variants and dtypes.

    Attributes:
        name: Operator name.
        category: Category of the operator.
        samples: Number of samples that ran.
        failed: Number of samples that did not run, by reason.
        forward: Keys of the forward calls' cases.
        backward: Keys of the backward calls' cases.
        random: True if the operator draws random numbers.
        lawless: Overloads that draw random numbers and have no law.
        outcome: PASS, or the outcome of the first case that does not pass.
        detail: The failing case and its detail.
    """

    name: str
    category: str
    samples: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    forward: set[Key] = field(default_factory=set)
    backward: set[Key] = field(default_factory=set)
    random: bool = False
    lawless: set[str] = field(default_factory=set)
    outcome: Outcome = Outcome.SKIPPED
    detail: str = ""

    def judge(self, phase: set[Key], verdicts: dict[Key, Verdict], served: frozenset[str]) -> tuple[Outcome, str]:
        """Return the outcome for one phase's cases: that of the first case that does not pass, and the reason."""
        if self.lawless:
            return Outcome.SKIPPED, f"{NO_LAW}: {', '.join(sorted(self.lawless)[:3])}"
        lacking = sorted({overload for overload, _ in phase} - served)
        if lacking:
            return Outcome.SKIPPED, f"{NO_KERNEL}: {', '.join(lacking[:3])}{', ...' if len(lacking) > 3 else ''}"
        for overload, case in sorted(phase):
            verdict = verdicts.get((overload, case))
            if verdict is not None and verdict.outcome is not Outcome.PASS:
                return verdict.outcome, f"{overload}: {verdict.detail}"
        missing = sum(key not in verdicts for key in phase)
        return (Outcome.SKIPPED, f"{missing} cases were not run") if missing else (Outcome.PASS, "")


@dataclass(frozen=True)
class OpInfoCoverage:
    """The coverage of an OpInfo trace.

    Attributes:
        by_overload: Coverage by overload, as for any trace.
        operators: Operators that count.
        phases: Operators that pass, and operators that have the phase.
        excluded: Operators that do not count, by reason.
        drawing: Those among them that draw random numbers; they are counted separately.
        not_run: Overloads with a kernel and no failure, some of whose cases were not run. Their coverage is unknown.
    """

    by_overload: Coverage
    operators: tuple[TestedOperator, ...]
    phases: dict[str, tuple[int, int]]  # by phase: operators that pass, operators that have the phase
    excluded: dict[str, list[str]]
    drawing: tuple[TestedOperator, ...]
    not_run: frozenset[str]

    def as_json(self) -> dict[str, Any]:
        """Return the object that `enable coverage opinfo --json` prints: a model's, plus operators and categories."""
        of_category: dict[str, list[TestedOperator]] = {c: [] for c in CATEGORIES}
        for operator in self.operators:
            of_category.setdefault(operator.category, []).append(operator)
        phases = {name: {"total": total, "covered": covered} for name, (covered, total) in self.phases.items()}
        summary = self.by_overload.as_json()
        judged_overloads = summary["overloads"]["compute"] - len(self.not_run)
        share = percent(judged_overloads, summary["overloads"]["covered"])
        return {
            **summary,
            "overloads": {**summary["overloads"], "not_run": len(self.not_run), "percent": share},
            "operators": {**_counts(self.operators), **phases},
            "categories": {name: _counts(members) for name, members in of_category.items()},
            "excluded": self.excluded,
            "operator_rows": [_row(operator) for operator in self.operators],
            "random": {**_counts(self.drawing), "operator_rows": [_row(operator) for operator in self.drawing]},
        }


def _counts(operators: Any) -> dict[str, Any]:
    """Return the number of operators and covered operators."""
    covered = sum(o.outcome is Outcome.PASS for o in operators)
    return {"total": len(operators), "covered": covered, "percent": percent(len(operators), covered)}


def _row(operator: TestedOperator) -> dict[str, Any]:
    """Return an operator's table row."""
    fields = {name: getattr(operator, name) for name in ("name", "category", "samples", "outcome", "detail")}
    if operator.detail.startswith(NO_KERNEL):
        fields["outcome"] = None
    return {
        **fields,
        "state": fields["outcome"] or NO_KERNEL,
        "failed_samples": sum(operator.failed.values()),
        "cases": len(operator.forward | operator.backward),
    }


def is_opinfo(trace: Trace) -> bool:
    """Return True if `enable capture opinfo` recorded the trace."""
    return isinstance(opinfo_of(trace), dict)


def opinfo_of(trace: Trace) -> Any:
    """Return `info.opinfo` from a trace's manifest, or None if the trace is not one of OpInfo."""
    info = trace.manifest.get("info")
    return info.get("opinfo") if isinstance(info, dict) else None


def measure_opinfo(
    trace: Trace,
    library: Library,
    judge: Judge,
    progress: Callable[[int], Callable[[Job, Verdict], None]],
    opinfo: frozenset[str],
    exhaustive: bool = False,
) -> OpInfoCoverage:
    """Judge the operators whose overloads all have a kernel, each until one case fails.

    Args:
        trace: The trace.
        library: The kernels.
        judge: Judges the cases.
        progress: Called with the number of cases; returns a function to call with each verdict.
        opinfo: Overloads that OpInfo tests.
        exhaustive: Judge all cases of all overloads that have a kernel.

    Returns:
        The coverage.

    Raises:
        TraceError: The trace is damaged.
    """
    operators, of_step, excluded = _groups(trace)

    def seen(record: CallRecord, case: str | None) -> None:
        operator = of_step(record)
        operator.random |= record.kind == "random"
        if record.kind == "random" and not needs_kernel(record.overload, record.kind):
            operator.lawless.add(record.overload)
        if needs_kernel(record.overload, record.kind):
            phase = operator.backward if record.phase == "backward" else operator.forward
            phase.add((record.overload, case or record.where))  # a call without contents has no case and is never run

    stored = read_calls(trace, seen)
    drawing = _leave_out(operators, excluded)
    all_operators = (*operators.values(), *drawing)
    cases = stored.cases
    matches = match_overloads(trace, library)
    served = frozenset(o for o, match in matches.items() if match is not None and o in cases)
    users: dict[Key, list[TestedOperator]] = defaultdict(list)
    for operator in all_operators:
        keys = operator.forward | operator.backward
        if not operator.lawless and all(overload in served for overload, _ in keys):
            for key in keys:
                users[key].append(operator)
    failing: set[str] = set()

    def needed(job: Job, case: str) -> bool:
        return exhaustive or any(o.name not in failing for o in users.get((job.plan.overload, case), ()))

    def note_failure(job: Job, verdict: Verdict) -> None:
        if verdict.outcome is not Outcome.PASS:
            failing.update(o.name for o in users.get((job.plan.overload, verdict.case), ()))

    selected = (
        cases
        if exhaustive
        else {o: [c for c in stored_cases if (o, c.id) in users] for o, stored_cases in cases.items()}
    )
    verdicts = judge_cases(selected, matches, judge, progress, needed, note_failure)
    for operator in all_operators:
        keys = operator.forward | operator.backward
        operator.outcome, operator.detail = operator.judge(keys, verdicts, served)
    rows = rows_of(trace, stored, matches, verdicts, judge.standings())
    sorted_operators = tuple(sorted(operators.values(), key=lambda o: o.name))
    phases = {name: _of_phase(sorted_operators, name, verdicts, served) for name in ("forward", "backward")}
    by_overload = Coverage("opinfo", str(trace.path), judge.platform.name, rows, opinfo)
    return OpInfoCoverage(by_overload, sorted_operators, phases, excluded, drawing, _not_run(cases, served, verdicts))


def _not_run(cases: dict[str, list[Case]], served: frozenset[str], verdicts: dict[Key, Verdict]) -> frozenset[str]:
    """Return the overloads whose cases passed as far as they were run, if some were not."""
    verdicts_by_overload = {o: [verdicts.get((o, case.id)) for case in cases[o]] for o in served}
    return frozenset(
        o
        for o, seen in verdicts_by_overload.items()
        if None in seen and all(v is None or v.outcome is Outcome.PASS for v in seen)
    )


def _of_phase(
    operators: tuple[TestedOperator, ...], phase: str, verdicts: dict[Key, Verdict], served: frozenset[str]
) -> tuple[int, int]:
    """Return the number of operators that pass a phase and the number that have it."""
    having = [(o, getattr(o, phase)) for o in operators if getattr(o, phase)]
    return sum(o.judge(keys, verdicts, served)[0] is Outcome.PASS for o, keys in having), len(having)


def _groups(
    trace: Trace,
) -> tuple[dict[str, TestedOperator], Callable[[CallRecord], TestedOperator], dict[str, list[str]]]:
    """Return the operators by name, a function from calls to operators, and the excluded operators by reason."""
    operators: dict[str, TestedOperator] = {}
    owners: list[tuple[int, int, TestedOperator]] = []  # first step, step after the last
    excluded: dict[str, list[str]] = defaultdict(list)
    try:
        info = opinfo_of(trace)
        for group in info["groups"]:
            operator = operators.setdefault(group["operator"], TestedOperator(group["operator"], group["category"]))
            operator.samples += group["samples"] - sum(int(index) >= 0 for index in group["failed"])
            operator.failed.update(group["failed"].values())
            owners.append((group["step"], group["step"] + group["samples"], operator))
        for name, reason in info["excluded"].items():
            excluded[reason].append(name)
        owners.sort(key=lambda owner: owner[0])
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise TraceError(f"{trace.path}: info.opinfo of the manifest is damaged ({error!r})") from error

    def of_step(record: CallRecord) -> TestedOperator:
        index = bisect_right(owners, record.step, key=lambda owner: owner[0]) - 1
        if index < 0 or record.step >= owners[index][1]:
            raise TraceError(f"{record.where}: step {record.step} is of no sample")
        return owners[index][2]

    return operators, of_step, excluded


def _leave_out(operators: dict[str, TestedOperator], excluded: dict[str, list[str]]) -> tuple[TestedOperator, ...]:
    """Move operators that do not count to `excluded`, and return those among them that draw random numbers."""
    drawing = []
    for name in sorted(operators):
        reason = _exclusion(operators[name])
        if reason:
            excluded[reason].append(name)
            operator = operators.pop(name)
            drawing += [operator] if operator.random else []
    return tuple(drawing)


def _exclusion(operator: TestedOperator) -> str:
    """Return why an operator does not count; empty if it does."""
    if operator.random:
        return "random"
    if not operator.samples:
        return f"no sample ran: {next(iter(operator.failed), 'there is none')}"
    return "" if operator.forward or operator.backward else "nothing but views and memory"


def opinfo_tables(coverage: OpInfoCoverage) -> str:
    """Return the table by category and the most frequent reasons for failures."""
    summary = coverage.as_json()
    rows = [{"category": name, **counts} for name, counts in summary["categories"].items()]
    total = summary["operators"]
    lines = [table(rows), ""]
    reasons = Counter(o.detail for o in coverage.operators if o.outcome is not Outcome.PASS)
    for name in ("forward", "backward"):
        lines.append(f"  {name:8}  {total[name]['covered']} of {total[name]['total']} operators that have it pass")
    for reason, names in coverage.excluded.items():
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        lines.append(f"  not counted  {len(names)} ({reason[:80]}): {shown}")
    lines += [f"  in the way  {count:4}  {detail[:110]}" for detail, count in reasons.most_common(8)]
    lines = [lines[0], *map(summary_line, lines[1:])]
    overloads = summary["overloads"]
    not_run = overloads["not_run"]
    not_run_note = f"; of {not_run} not all cases were run, --exhaustive runs them" if not_run else ""
    covered = f"{overloads['covered']} of {overloads['compute']} that need a kernel{not_run_note}"
    lines.append(summary_line(f"  overloads covered  {covered}"))
    lines += _drawing_lines(summary["random"])
    lines.append(f"OpInfo operators covered: {total['covered']} of {total['total']}{share(total)}")
    return "\n".join(lines)


def _drawing_lines(drawing: dict[str, Any]) -> list[str]:
    """Return a table of the operators that draw random numbers, and their count."""
    if not drawing["total"]:
        return []
    shown = ("name", "samples", "cases", "state")
    rows = [{**{k: row[k] for k in shown}, "detail": row["detail"][:60]} for row in drawing["operator_rows"]]
    summary = f"operators that draw random numbers: {drawing['covered']} of {drawing['total']}{share(drawing)}"
    return ["", table(rows), "", summary]


class Users:
    """Records which OpInfo operators call an overload.

    `see` is a callback for `read_calls`. For a model's trace nothing is recorded.
    """

    def __init__(self, trace: Trace) -> None:
        """Read the trace's manifest. Raise TraceError if it is damaged."""
        self._of_step = _groups(trace)[1] if is_opinfo(trace) else None
        self.operators: dict[str, set[str]] = defaultdict(set)  # operator -> overloads
        # overload -> number of calls by (operator, category)
        self._calls: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)

    def see(self, record: CallRecord, case: str | None) -> None:
        """Record a computing call."""
        if self._of_step is None or record.kind != "compute":
            return
        operator = self._of_step(record)
        self.operators[operator.name].add(record.overload)
        self._calls[record.overload][operator.name, operator.category] += 1

    @property
    def categories(self) -> dict[str, str]:
        """Return each overload's category: its namesake operator's, or else its most frequent caller's."""
        categories = {}
        for overload, calls in self._calls.items():
            base_name = overload.removeprefix("aten::").split(".")[0].removesuffix("_backward")
            namesake = [category for name, category in calls if name.split(".")[-1] == base_name]
            categories[overload] = namesake[0] if namesake else calls.most_common(1)[0][0][1]
        return categories
