"""A program's position in its training: phase and step.

A step ends when the program says so. If a program never does, its optimizer ends the steps: a new step begins with the
first work towards a gradient after an optimizer step. Calls in between, such as reading the loss or an evaluation,
belong to the previous step. The kind of program is known late, because several optimizers may step before the program
marks the end of a step. Until then both interpretations are tracked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from capture.limits import Limits

MARKS, OPTIMIZER = "marks", "optimizer"  # the ways in which a program's steps end
running_backward = torch._C._current_graph_task_id  # -1 outside autograd's engine


class Phases:
    """The program's current phase.

    Phases that the program names are nested, innermost last, and apply to all threads, because backward runs in its
    own. Optimizer steps and zeroing of gradients count as the optimizer's phase.

    Attributes:
        in_backward: Phase of a call made now under autograd's engine.
        elsewhere: Phase of a call made now outside it.
    """

    def __init__(self) -> None:
        self._explicit: list[str] = []
        self._markers: list[str] = []  # open profiler blocks
        self._set()

    def _set(self) -> None:
        optimizing = any(marker.startswith("Optimizer.") for marker in self._markers)
        self.in_backward = self._explicit[-1] if self._explicit else "backward"
        self.elsewhere = self._explicit[-1] if self._explicit else "optimizer" if optimizing else "forward"

    def current(self) -> str:
        """Return the phase of a call made now in this thread."""
        return self.elsewhere if running_backward() == -1 else self.in_backward

    def begin(self, name: str) -> None:
        """Enter a phase that the program names, until `end`."""
        self._explicit.append(name)
        self._set()

    def end(self) -> None:
        """Leave the phase that the program named last."""
        self._explicit.pop()
        self._set()

    def follow(self, overload: str, args: tuple[Any, ...]) -> bool:
        """Process a profiler call. Return True if it ended an optimizer step.

        Optimizers mark their step for the profiler, and end the mark even if the step raises.
        """
        stepped = False
        if overload.startswith("profiler::_record_function_enter"):
            self._markers.append(str(args[0]))
        elif overload.startswith("profiler::_record_function_exit") and self._markers:
            stepped = self._markers.pop().startswith("Optimizer.step#")
        self._set()
        return stepped


class Steps:
    """The current training step, and the decision to record it.

    Attributes:
        number: Number of the step in the recording; negative while steps are skipped.
        marked: True if the program marks the end of its steps.
        first: Steps up to this number form the first step. Optimizers had ended them before the program marked a step.
        wanted: True if this step is recorded.
        over: True if neither this step nor any later one is recorded.
        doubtful: True if this step is recorded only because the program may still say that the first step continues. If
            it never does, this step is surplus.
    """

    def __init__(self, limits: Limits) -> None:
        self.marked = False
        self.first = 0
        self._optimized = False  # an optimizer has stepped since this step began
        self._limits = limits
        self._set(-limits.skip_steps)

    def _set(self, number: int) -> None:
        self.number = number
        self._optimized = False
        enough = self._limits.steps is not None and number - self.first >= self._limits.steps
        self.doubtful = enough and not self.marked and not self._limits.skip_steps
        self.over = enough and not self.doubtful
        self.wanted = number >= 0 and not self.over

    @property
    def ending(self) -> bool:
        """Return True if the step ends automatically with the next work towards a gradient."""
        return self._optimized and not self.marked

    @property
    def restarts(self) -> bool:
        """Return True if a mark by the program would turn everything recorded so far into skipped steps."""
        return bool(self._limits.skip_steps) and not self.marked

    @property
    def ended(self) -> int:
        """Return the number of steps that have ended, including skipped ones."""
        return self.number + self._limits.skip_steps + (self._optimized and not self.marked)

    @property
    def count(self) -> int:
        """Return the number of recorded steps."""
        under_way = not self.marked or self._optimized
        number = max(self.number - self.first + under_way, 0)
        return number if self._limits.steps is None else min(number, self._limits.steps)

    @property
    def ended_by(self) -> str | None:
        """Return the way in which the steps ended, or None if no step has ended."""
        return (
            MARKS if self.marked else OPTIMIZER if self.number > -self._limits.skip_steps or self._optimized else None
        )

    def optimized(self) -> None:
        """Record that an optimizer has stepped."""
        self._optimized = True

    def end(self) -> None:
        """End the step, because the program says so."""
        if not self.marked:
            self.marked = True
            if self._limits.skip_steps:
                self.number = -self._limits.skip_steps
            else:
                self.first = self.number
        self._set(self.number + 1)

    def end_by_itself(self) -> None:
        """End the step, because work for the next one begins."""
        self._set(self.number + 1)


def begins_work(overload: str, phase: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if a call begins work towards a gradient.

    Such a call takes a parameter or another leaf that requires grad, while gradients are enabled.
    """
    if phase in ("backward", "optimizer") or not torch.is_grad_enabled() or overload == "aten::detach":
        return False
    return any(t.requires_grad and t.is_leaf for t in _tensors((args, tuple(kwargs.values()))))


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
