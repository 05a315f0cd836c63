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
running_backward = torch._C._current_graph_task_id  # -1 outside autograd's engine


class Phases:
    """What a program is doing: phases that it named, innermost last, of all threads, as backward has its own.

    A step of an optimizer, or its zeroing of gradients, is the optimizer's. in_backward, elsewhere: the phase of a call
    that happens now under autograd's engine, or not.
    """

    def __init__(self) -> None:
        self._explicit: list[str] = []
        self._markers: list[str] = []  # open blocks of the profiler
        self._set()

    def _set(self) -> None:
        optimizing = any(marker.startswith("Optimizer.") for marker in self._markers)
        self.in_backward = self._explicit[-1] if self._explicit else "backward"
        self.elsewhere = self._explicit[-1] if self._explicit else "optimizer" if optimizing else "forward"

    def current(self) -> str:
        """Name of the phase that a call belongs to which happens now, in this thread."""
        return self.elsewhere if running_backward() == -1 else self.in_backward

    def begin(self, name: str) -> None:
        """The program names what it does until `end`."""
        self._explicit.append(name)
        self._set()

    def end(self) -> None:
        """The phase that the program named last is over."""
        self._explicit.pop()
        self._set()

    def follow(self, overload: str, args: tuple[Any, ...]) -> bool:
        """Take in a call of the profiler; whether it ended a step of an optimizer.

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
