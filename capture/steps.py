"""Where a program is in its training: in which phase, and in which step.

A step ends where the program says so. A program that never does has its steps ended by its optimizer: a new one begins
with the first work towards a gradient after a step of the optimizer; what is called between these, such as reading the
loss or an evaluation, belongs to the step before. Which kind of program it is shows late, after several optimizers may
have made their steps, so until then both readings are kept possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from capture.limits import Limits

MARKS, OPTIMIZER = "marks", "optimizer"  # what ends the steps of a program
_running_backward = torch._C._current_graph_task_id


class Phases:
    """What a program is doing. explicit: phases that it named, innermost last; of all threads, as backward has its own.

    optimizing: a step of an optimizer, or its zeroing of gradients, is under way.
    """

    def __init__(self) -> None:
        self.explicit: list[str] = []
        self.optimizing = False
        self._markers: list[str] = []  # open blocks of the profiler

    def current(self) -> str:
        """Name of the phase that a call belongs to which happens now, in this thread."""
        if self.explicit:
            return self.explicit[-1]
        if _running_backward() != -1:
            return "backward"
        return "optimizer" if self.optimizing else "forward"

    def follow(self, overload: str, args: tuple[Any, ...]) -> bool:
        """Take in a call of the profiler; whether it ended a step of an optimizer.

        Optimizers mark their step for the profiler, and end the mark even if the step raises.
        """
        stepped = False
        if overload.startswith("profiler::_record_function_enter"):
            self._markers.append(str(args[0]))
        elif overload.startswith("profiler::_record_function_exit") and self._markers:
            stepped = self._markers.pop().startswith("Optimizer.step#")
        self.optimizing = any(marker.startswith("Optimizer.") for marker in self._markers)
        return stepped


class Steps:
    """Training steps: which one it is, and whether it is to be recorded.

    number: of the step in the recording. marked: the program says where its steps end. first: the steps up to this
    number, which optimizers had ended before the program said anything, are all its first one. wanted: this step is
    recorded. over: this and all later ones are not. doubtful: it is recorded, since the program may still say that the
    first step goes on; if it never does, it is one too many.
    """

    def __init__(self, limits: Limits) -> None:
        self.marked = False
        self.first = 0
        self._optimized = False  # an optimizer has made a step since this one began
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
        """Whether the step ends by itself with the next work towards a gradient."""
        return self._optimized and not self.marked

    @property
    def restarts(self) -> bool:
        """Whether the end that is to come makes all that was recorded part of skipped steps."""
        return bool(self._limits.skip_steps) and not self.marked

    @property
    def ended(self) -> int:
        """How many steps have ended, also of those that were let pass."""
        return self.number + self._limits.skip_steps + (self._optimized and not self.marked)

    @property
    def count(self) -> int:
        """How many steps are recorded."""
        under_way = not self.marked or self._optimized
        number = max(self.number - self.first + under_way, 0)
        return number if self._limits.steps is None else min(number, self._limits.steps)

    @property
    def ended_by(self) -> str | None:
        """What ended the steps; None where nothing did."""
        return (
            MARKS if self.marked else OPTIMIZER if self.number > -self._limits.skip_steps or self._optimized else None
        )

    def optimized(self) -> None:
        """An optimizer has made a step."""
        self._optimized = True

    def end(self) -> None:
        """The program says that the step has ended."""
        if not self.marked:
            self.marked = True
            if self._limits.skip_steps:
                self.number = -self._limits.skip_steps
            else:
                self.first = self.number
        self._set(self.number + 1)

    def end_by_itself(self) -> None:
        """The next one begins."""
        self._set(self.number + 1)


def begins_work(overload: str, phase: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call begins work towards a gradient: it takes a parameter, or another leaf, while gradients are on."""
    if phase in ("backward", "optimizer") or not torch.is_grad_enabled() or overload == "aten::detach":
        return False
    return any(t.requires_grad and t.is_leaf for t in _tensors((args, tuple(kwargs.values()))))


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
