"""Shrink a program and its inputs while it fails in the same way (delta debugging).

The statements of each list are removed in runs that are halved, as in ddmin (Zeller and Hildebrandt, "Simplifying and
Isolating Failure-Inducing Input", 2002). All steps are repeated until none makes the program smaller.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from enable.reduce import edits, inputs
from enable.reduce.failure import Failure, Trials
from traces import UserError
from verify.outcome import Outcome


@dataclass
class Reduction:
    """A program that fails and its inputs; both become smaller.

    Attributes:
        source: Program without the imports that each trial provides.
        arguments: Arguments of its wrapper's operator.
        ended: Reason for stopping before nothing could be removed any more, or ''.
    """

    source: str
    arguments: inputs.Arguments
    ended: str = ""


class Reducer:
    """Reduces one failing program.

    A wrong result is a special case: a program with less code is wrong, too, but for another reason. So its inputs are
    reduced first, and then only code that leaves its wrong result as it is.
    """

    def __init__(self, trials: Trials, source: str, arguments: inputs.Arguments, deadline: float) -> None:
        """Prepare a reduction.

        Args:
            trials: How programs are tried.
            source: Linked text of the kernel file.
            arguments: The failing call's arguments.
            deadline: Time of `time.monotonic` at which it stops.

        Raises:
            UserError: The program does not fail without its comments and with inputs that share no memory.
        """
        self._trials, self._deadline = trials, deadline
        self._tree = edits.prepared(source)
        copied = {name: inputs.plain(value) for name, value in arguments.items()}
        self.result = Reduction(ast.unparse(self._tree), copied)
        self._seen = set[tuple[str, str]]()
        self._answer: Any = None
        self._on_trial: Callable[[Reduction], None] = lambda reduction: None
        if not self._fails(self.result.source, copied):
            raise UserError("the failure depends on inputs that share memory, or is not deterministic; report it whole")

    def reduce(self, on_trial: Callable[[Reduction], None]) -> Reduction:
        """Reduce until nothing can be removed, the time is over, or Ctrl-C is pressed; return the smallest program."""
        self._on_trial = on_trial
        try:
            while self._round():
                pass
        except TimeoutError:
            self.result.ended = "the time is over"
        except KeyboardInterrupt:
            self.result.ended = "interrupted"
        return self.result

    def _round(self) -> bool:
        """Apply all steps once; return True if one of them made the program or its inputs smaller."""
        before = self.result.source, self.result.arguments
        self._answer = None
        self._reduce_inputs()
        if self._trials.failure.outcome is Outcome.WRONG:
            self._answer = self._trials.judge(self.result.source, self.result.arguments)[1]
        for step in (edits.bodies, edits.parameters, edits.arguments, edits.expressions, edits.substitutions):
            self._delete()
            self._apply(step)
        return (self.result.source, self.result.arguments) != before

    def _delete(self) -> None:
        """Delete runs of statements; after a deletion, continue with runs that are at most as long."""
        longest, deleted = len(self.result.source), True
        while deleted:
            deleted = False
            for size, edit in edits.chunks(self._tree):
                if size <= longest and self._try(edit):
                    longest, deleted = size, True
                    break

    def _apply(self, step: Callable[[ast.Module], Iterable[edits.Edit]]) -> None:
        """Try the edits of a step; after a success, continue behind it in the edits of the new program."""
        skip, pending = 0, iter(step(self._tree))
        while (edit := next(pending, None)) is not None:
            skip += 1
            if self._try(edit):
                skip -= 1
                pending = _after(step(self._tree), skip)

    def _try(self, edit: edits.Edit) -> bool:
        tree = edits.applied(self._tree, edit)
        if tree is None:
            return False
        ast.fix_missing_locations(tree)
        source = ast.unparse(tree)
        if not self._fails(source, self.result.arguments):
            return False
        self._tree, self.result.source = tree, source
        return True

    def _reduce_inputs(self) -> None:
        reduced = True
        while reduced:
            reduced = False
            for arguments in inputs.simpler(self.result.arguments):
                changed = inputs.is_changed(self.result.arguments, arguments)
                if changed and self._fails(self.result.source, arguments):
                    self.result.arguments, reduced = arguments, True
                    break

    def _fails(self, source: str, arguments: inputs.Arguments) -> bool:
        """Return True if the program fails in the same way as the unreduced one; each is tried once."""
        tried = source, repr({name: inputs.code(value) for name, value in arguments.items()})
        if tried in self._seen:
            return False
        self._seen.add(tried)
        if time.monotonic() > self._deadline:
            raise TimeoutError
        verdict, answer = self._trials.judge(source, arguments)
        same = verdict is not None and Failure.of(verdict) == self._trials.failure
        same = same and (self._answer is None or answer == self._answer)
        self._on_trial(self.result)
        return same


def _after(edits_: Iterable[edits.Edit], count: int) -> Iterator[edits.Edit]:
    pending = iter(edits_)
    for _ in range(count):
        next(pending, None)
    return pending
