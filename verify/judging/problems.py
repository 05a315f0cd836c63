"""Describe a case's problems, and derive them from a child's reply."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from verify.comparison.compare import Mismatch
from verify.judging.reply import Reply
from verify.outcome import Outcome

MOST_ACCESSES = 5  # accesses shown in a report


@dataclass(frozen=True)
class Problem:
    """Reason why a case does not pass.

    Attributes:
        outcome: Case outcome.
        layer: A layer from outcome.LAYERS.
        detail: One line.
        report: More evidence, if any.
        rule: The layer's rule.
    """

    outcome: Outcome
    layer: str
    detail: str
    report: str = ""
    rule: str = ""


class Ended(Exception):
    """Error that carries a problem out of a nested step."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def mismatched(mismatch: Mismatch, reply: Reply) -> Problem:
    """Return a problem for wrong values, with the invalid accesses that may have caused them."""
    report = "\n".join([mismatch.report, *access_reports(reply)])
    return Problem(Outcome.WRONG, "compare", mismatch.detail, report, mismatch.rule)


def access_reports(reply: Reply) -> list[str]:
    """Return reports on the first few invalid accesses."""
    return [access.report for access in reply.accesses[:MOST_ACCESSES]]


def side_effects(reply: Reply, any_stays: bool = False) -> list[Problem]:
    """Return a call's problems apart from its answer.

    Args:
        reply: Reply from the child.
        any_stays: True if each value among several stored to one place may remain.
    """
    problems = []
    invalid = [access for access in reply.accesses if not (any_stays and access.stores)]
    if invalid:
        first, text = invalid[0], "\n".join(access.report for access in invalid[:MOST_ACCESSES])
        problems.append(Problem(Outcome.WRONG, "access", first.text, text, first.kind))
    if reply.outside:
        problems.append(
            Problem(Outcome.WRONG, "access", "memory just outside an argument was written", rule="guard band")
        )
    if reply.threads:
        problems.append(
            Problem(Outcome.CHEAT, "threads", f"{reply.threads} threads still ran when the wrapper returned")
        )
    if reply.types:
        problems.append(Problem(Outcome.WRONG, "types", reply.types[0], "\n".join(reply.types)))
    if reply.aliases_earlier:
        text = "the result shares memory with the result of an earlier call"
        problems.append(Problem(Outcome.WRONG, "repeat", text, rule="alias"))
    if reply.globals:
        problems.append(Problem(Outcome.CHEAT, "globals", f"the call changed {', '.join(reply.globals)}"))
    return problems


def launched_otherwise(compiled: Reply, executed: Reply) -> Problem:
    """Return a problem with the first launch that differs when kernels only compile."""
    if compiled.status != "ok":
        text = f"it fails where kernels only compile: {first_line(compiled.text)}"
        return Problem(Outcome.COMPILE_ERROR, "compile", text, compiled.text)
    pairs = zip_longest(compiled.launched, executed.launched, fillvalue="nothing")
    differs = ((n, a, b) for n, (a, b) in enumerate(pairs, 1) if a != b)
    number, dry_run, run = next(differs, (len(executed.launched), "another", "one"))
    text = f"launch {number} is {run} when kernels run, and {dry_run} when they only compile; it must be the same"
    return Problem(Outcome.CHEAT, "launch", text, rule="otherwise")


def first_line(text: str) -> str:
    """Return the first line in a child's message, which may be empty."""
    return text.partition("\n")[0] or "no reason was given"
