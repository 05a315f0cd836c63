"""Coverage of a trace of OpInfo: an operator is covered if every leaf call of every sample of it passes.

Operators that draw random numbers are counted apart: of these, calls that draw pass by their laws.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from enable.cover.coverage import (
    NO_KERNEL,
    Coverage,
    judge_cases,
    match_overloads,
    needs_kernel,
    percent,
    read_calls,
    rows_of,
)
from enable.tables import share, table
from generate.kernel_library import Library
from traces import TraceError
from traces.records import CallRecord
from traces.store import Trace
from verify.cases.case import Case
from verify.judging.judge import Job, Judge
from verify.outcome import Outcome, Verdict

Key = tuple[str, str]  # overload, id of a case
NO_LAW = "no law to judge it by"
CATEGORIES = (
    "Elementwise", "Deep Learning", "Linear Algebra", "Other", "Shape Manipulation", "Reduction",
    "Indexing & Selection",
)  # fmt: skip


@dataclass
class TestedOperator:
    """One operator of OpInfo with all its variants and dtypes.

    samples: that ran. failed: that did not, by reason. forward, backward: the cases that its calls are. lacking:
    overloads without a kernel. lawless: those that it draws with and that have no law; random: whether it draws.
    outcome: PASS, or that of the first case that does not; detail: which.
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
        """Of the cases of one phase: the outcome of the first that does not pass, and why."""
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
    """by_overload: as of any trace. excluded: operators that do not count, by reason. drawing: those of them that draw
    random numbers, which count apart. not_run: overloads that have a kernel, none of whose cases failed and some of
    whose were not run: whether they are covered is not known."""

    by_overload: Coverage
    operators: tuple[TestedOperator, ...]
    phases: dict[str, tuple[int, int]]  # operators that pass, operators that have it
    excluded: dict[str, list[str]]
    drawing: tuple[TestedOperator, ...]
    not_run: frozenset[str]

    def as_json(self) -> dict[str, Any]:
        """What `enable coverage opinfo --json` prints: as for a model, with `operators` and `categories`."""
        of_category: dict[str, list[TestedOperator]] = {c: [] for c in CATEGORIES}
        for operator in self.operators:
            of_category.setdefault(operator.category, []).append(operator)
        phases = {name: {"total": total, "covered": covered} for name, (covered, total) in self.phases.items()}
        found = self.by_overload.as_json()
        known = found["overloads"]["compute"] - len(self.not_run)
        share = percent(known, found["overloads"]["covered"])
        return {
            **found,
            "overloads": {**found["overloads"], "not_run": len(self.not_run), "percent": share},
            "operators": {**_counts(self.operators), **phases},
            "categories": {name: _counts(found) for name, found in of_category.items()},
            "excluded": self.excluded,
            "operator_rows": [_row(operator) for operator in self.operators],
            "random": {**_counts(self.drawing), "operator_rows": [_row(operator) for operator in self.drawing]},
        }


def _counts(operators: Any) -> dict[str, Any]:
    covered = sum(o.outcome is Outcome.PASS for o in operators)
    return {"total": len(operators), "covered": covered, "percent": percent(len(operators), covered)}


def _row(operator: TestedOperator) -> dict[str, Any]:
    found = {name: getattr(operator, name) for name in ("name", "category", "samples", "outcome", "detail")}
    if operator.detail.startswith(NO_KERNEL):
        found["outcome"] = None
    return {
        **found,
        "state": found["outcome"] or NO_KERNEL,
        "failed_samples": sum(operator.failed.values()),
        "cases": len(operator.forward | operator.backward),
    }


def is_opinfo(trace: Trace) -> bool:
    """Whether `enable capture opinfo` recorded the trace."""
    return isinstance(opinfo_of(trace), dict)


def opinfo_of(trace: Trace) -> Any:
    """`info.opinfo` of a trace's manifest; None if it is none of OpInfo."""
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
    """Judge the cases of every operator all of whose overloads have a kernel, each until one fails.

    exhaustive: judge all cases of all overloads that have a kernel. Raises TraceError on a damaged trace.
    """
    operators, of_step, excluded = _groups(trace)

    def seen(record: CallRecord, case: str | None) -> None:
        operator = of_step(record)
        operator.random |= record.kind == "random"
        if record.kind == "random" and not needs_kernel(record.overload, record.kind):
            operator.lawless.add(record.overload)
        if needs_kernel(record.overload, record.kind):
            phase = operator.backward if record.phase == "backward" else operator.forward
            phase.add((record.overload, case or record.where))  # without contents it is of no case, and is not run

    stored = read_calls(trace, seen)
    drawing = _leave_out(operators, excluded)
    every = (*operators.values(), *drawing)
    cases = stored.cases
    matches = match_overloads(trace, library)
    served = frozenset(o for o, match in matches.items() if match is not None and o in cases)
    users: dict[Key, list[TestedOperator]] = defaultdict(list)
    for operator in every:
        keys = operator.forward | operator.backward
        if not operator.lawless and all(overload in served for overload, _ in keys):
            for key in keys:
                users[key].append(operator)
    failing: set[str] = set()

    def needed(job: Job, case: str) -> bool:
        return exhaustive or any(o.name not in failing for o in users.get((job.plan.overload, case), ()))

    def told(job: Job, verdict: Verdict) -> None:
        if verdict.outcome is not Outcome.PASS:
            failing.update(o.name for o in users.get((job.plan.overload, verdict.case), ()))

    wanted = cases if exhaustive else {o: [c for c in found if (o, c.id) in users] for o, found in cases.items()}
    verdicts = judge_cases(wanted, matches, judge, progress, needed, told)
    for operator in every:
        keys = operator.forward | operator.backward
        operator.outcome, operator.detail = operator.judge(keys, verdicts, served)
    rows = rows_of(trace, stored, matches, verdicts, judge.standings())
    found = tuple(sorted(operators.values(), key=lambda o: o.name))
    phases = {name: _of_phase(found, name, verdicts, served) for name in ("forward", "backward")}
    by_overload = Coverage("opinfo", str(trace.path), judge.platform.name, rows, opinfo)
    return OpInfoCoverage(by_overload, found, phases, excluded, drawing, _not_run(cases, served, verdicts))


def _not_run(cases: dict[str, list[Case]], served: frozenset[str], verdicts: dict[Key, Verdict]) -> frozenset[str]:
    found = {o: [verdicts.get((o, case.id)) for case in cases[o]] for o in served}
    return frozenset(
        o for o, seen in found.items() if None in seen and all(v is None or v.outcome is Outcome.PASS for v in seen)
    )


def _of_phase(
    operators: tuple[TestedOperator, ...], phase: str, verdicts: dict[Key, Verdict], served: frozenset[str]
) -> tuple[int, int]:
    having = [(o, getattr(o, phase)) for o in operators if getattr(o, phase)]
    return sum(o.judge(keys, verdicts, served)[0] is Outcome.PASS for o, keys in having), len(having)


def _groups(
    trace: Trace,
) -> tuple[dict[str, TestedOperator], Callable[[CallRecord], TestedOperator], dict[str, list[str]]]:
    """Every operator by name, the operator of a call, and what was left out when the trace was recorded, by reason."""
    found: dict[str, TestedOperator] = {}
    owners: list[tuple[int, int, TestedOperator]] = []  # first step, step after the last
    excluded: dict[str, list[str]] = defaultdict(list)
    try:
        told = opinfo_of(trace)
        for group in told["groups"]:
            operator = found.setdefault(group["operator"], TestedOperator(group["operator"], group["category"]))
            operator.samples += group["samples"] - sum(int(index) >= 0 for index in group["failed"])
            operator.failed.update(group["failed"].values())
            owners.append((group["step"], group["step"] + group["samples"], operator))
        for name, reason in told["excluded"].items():
            excluded[reason].append(name)
        owners.sort(key=lambda owner: owner[0])
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise TraceError(f"{trace.path}: info.opinfo of the manifest is damaged ({error!r})") from error

    def of_step(record: CallRecord) -> TestedOperator:
        place = bisect_right(owners, record.step, key=lambda owner: owner[0]) - 1
        if place < 0 or record.step >= owners[place][1]:
            raise TraceError(f"{record.where}: step {record.step} is of no sample")
        return owners[place][2]

    return found, of_step, excluded


def _leave_out(operators: dict[str, TestedOperator], excluded: dict[str, list[str]]) -> tuple[TestedOperator, ...]:
    """Move the operators that do not count from the ones to the others. Returns those that draw random numbers."""
    drawing = []
    for name in sorted(operators):
        reason = _exclusion(operators[name])
        if reason:
            excluded[reason].append(name)
            operator = operators.pop(name)
            drawing += [operator] if operator.random else []
    return tuple(drawing)


def _exclusion(operator: TestedOperator) -> str:
    if operator.random:
        return "random"
    if not operator.samples:
        return f"no sample ran: {next(iter(operator.failed), 'there is none')}"
    return "" if operator.forward or operator.backward else "nothing but views and memory"


def opinfo_tables(coverage: OpInfoCoverage) -> str:
    """Operators by category, then what stands in the way of the others."""
    found = coverage.as_json()
    rows = [{"category": name, **counts} for name, counts in found["categories"].items()]
    total = found["operators"]
    lines = [table(rows), ""]
    lacking = Counter(o.detail for o in coverage.operators if o.outcome is not Outcome.PASS)
    for name in ("forward", "backward"):
        lines.append(f"  {name:8}  {total[name]['covered']} of {total[name]['total']} operators that have it pass")
    for reason, names in coverage.excluded.items():
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        lines.append(f"  not counted  {len(names)} ({reason[:80]}): {shown}")
    lines += [f"  in the way  {count:4}  {detail[:110]}" for detail, count in lacking.most_common(8)]
    overloads = found["overloads"]
    not_run = overloads["not_run"]
    more = f"; of {not_run} not all cases were run, --exhaustive runs them" if not_run else ""
    lines.append(f"  overloads covered  {overloads['covered']} of {overloads['compute']} that need a kernel{more}")
    lines += _drawing_lines(found["random"])
    lines.append(f"OpInfo operators covered: {total['covered']} of {total['total']}{share(total)}")
    return "\n".join(lines)


def _drawing_lines(found: dict[str, Any]) -> list[str]:
    """The operators that draw random numbers, each with what it is judged to be, and how many are covered."""
    if not found["total"]:
        return []
    shown = ("name", "samples", "cases", "state")
    rows = [{**{k: row[k] for k in shown}, "detail": row["detail"][:60]} for row in found["operator_rows"]]
    said = f"operators that draw random numbers: {found['covered']} of {found['total']}{share(found)}"
    return ["", table(rows), "", said]


class Users:
    """Which operators of OpInfo call an overload. `see` is for `read_calls`; of a trace of a model nothing is noted."""

    def __init__(self, trace: Trace) -> None:
        """Raises TraceError if the manifest is damaged."""
        self._of_step = _groups(trace)[1] if is_opinfo(trace) else None
        self.operators: dict[str, set[str]] = defaultdict(set)  # overloads by operator
        self._calls: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)  # operators, categories by overload

    def see(self, record: CallRecord, case: str | None) -> None:
        if self._of_step is None or record.kind != "compute":
            return
        operator = self._of_step(record)
        self.operators[operator.name].add(record.overload)
        self._calls[record.overload][operator.name, operator.category] += 1

    @property
    def categories(self) -> dict[str, str]:
        """The category of each overload: of the operator that has its name, else of the one that calls it most."""
        found = {}
        for overload, calls in self._calls.items():
            own = overload.removeprefix("aten::").split(".")[0].removesuffix("_backward")
            namesake = [category for name, category in calls if name.split(".")[-1] == own]
            found[overload] = namesake[0] if namesake else calls.most_common(1)[0][0][1]
        return found
