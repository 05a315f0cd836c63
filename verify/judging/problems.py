"""Why a case does not pass, and what a child's reply says of that beside the answer."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from verify.comparison.compare import Mismatch
from verify.judging.reply import Reply
from verify.outcome import Outcome

MOST_ACCESSES = 5  # that a report shows


@dataclass(frozen=True)
class Problem:
    """Why a case does not pass. layer: one of outcome.LAYERS. detail: one line. report: more evidence, if there is."""

    outcome: Outcome
    layer: str
    detail: str
    report: str = ""
    rule: str = ""


class Ended(Exception):
    """A problem was found in the midst of something else."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def mismatched(mismatch: Mismatch, reply: Reply) -> Problem:
    """Wrong values, with the accesses that must not be, which may have made them so."""
    report = "\n".join([mismatch.report, *astray(reply)])
    return Problem(Outcome.WRONG, "compare", mismatch.detail, report, mismatch.rule)


def astray(reply: Reply) -> list[str]:
    """Reports of the first few accesses that must not be."""
    return [access.report for access in reply.accesses[:MOST_ACCESSES]]


def side_effects(reply: Reply, any_stays: bool = False) -> list[Problem]:
    """What a call did beside its answer. any_stays: it is open which of several values for one place stays there."""
    found = []
    wrong = [access for access in reply.accesses if not (any_stays and access.stores)]
    if wrong:
        first, text = wrong[0], "\n".join(access.report for access in wrong[:MOST_ACCESSES])
        found.append(Problem(Outcome.WRONG, "access", first.text, text, first.kind))
    if reply.outside:
        found.append(Problem(Outcome.WRONG, "access", "memory just outside an argument was written", rule="guard band"))
    if reply.threads:
        found.append(Problem(Outcome.CHEAT, "threads", f"{reply.threads} threads still ran when the wrapper returned"))
    if reply.types:
        found.append(Problem(Outcome.WRONG, "types", reply.types[0], "\n".join(reply.types)))
    if reply.aliases_earlier:
        text = "the result shares memory with the result of an earlier call"
        found.append(Problem(Outcome.WRONG, "repeat", text, rule="alias"))
    if reply.globals:
        found.append(Problem(Outcome.CHEAT, "globals", f"the call changed {', '.join(reply.globals)}"))
    return found


def launched_otherwise(compiled: Reply, executed: Reply) -> Problem:
    """The first launch that was another one where kernels only compile."""
    if compiled.status != "ok":
        text = f"it fails where kernels only compile: {first_line(compiled.text)}"
        return Problem(Outcome.COMPILE_ERROR, "compile", text, compiled.text)
    pairs = zip_longest(compiled.launched, executed.launched, fillvalue="nothing")
    differs = ((n, a, b) for n, (a, b) in enumerate(pairs, 1) if a != b)
    number, there, here = next(differs, (len(executed.launched), "another", "one"))
    text = f"launch {number} is {here} when kernels run, and {there} when they only compile; it must be the same"
    return Problem(Outcome.CHEAT, "launch", text, rule="otherwise")


def first_line(text: str) -> str:
    """Of what a child said, which may be nothing."""
    return text.partition("\n")[0] or "no reason was given"
