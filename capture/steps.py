"""Which training step it is."""

from __future__ import annotations

from capture.limits import Limits


class StepCount:
    """Training steps: which one it is, and whether it is to be recorded.

    number: counted from the first recorded one. wanted: it is recorded. over: neither it nor any later one is.
    optimized: an optimizer has made a step in it.
    """

    def __init__(self, limits: Limits) -> None:
        self.optimized = False
        self._explicit = False
        self._limits = limits
        self._set(-limits.skip_steps)

    def _set(self, number: int) -> None:
        self.number = number
        self.over = self._limits.steps is not None and number >= self._limits.steps
        self.wanted = number >= 0 and not self.over

    def end(self) -> None:
        """The program says that the step has ended."""
        self._explicit, self.optimized = True, False
        self._set(self.number + 1)

    def end_by_itself(self) -> None:
        """The program goes on after a step of an optimizer, and may never say so."""
        self.optimized = False
        if not self._explicit:
            self._set(self.number + 1)
