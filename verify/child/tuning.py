"""Autotuners, which choose by time elsewhere, take the configuration that the judge names: each of them in its turn."""

from __future__ import annotations

from typing import Any

from verify.child.guards import notes

MAX_CONFIGURATIONS = 64  # of one autotuner, all of which are judged
TUNES = 1  # the seed of a call in which autotuners run every configuration to choose one; in others they have chosen


class Tuning:
    """Set anew for each request. number: of the configuration, modulo how many there are."""

    def __init__(self) -> None:
        self.configure(0, False)

    def configure(self, number: int, runs: bool) -> None:
        """runs: autotuners run every configuration before they take that one."""
        self._number, self._runs = number, runs
        self._timed = self._chosen = 0

    def tune(self, run: Any, autotuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the autotuner's own `run`, which chooses anew. Raises ValueError if it has too many to choose from."""
        count = len(autotuner.configs)
        notes.configurations = max(notes.configurations, count)
        if count > MAX_CONFIGURATIONS:
            raise ValueError(f"{count} configurations of an autotuner; at most {MAX_CONFIGURATIONS} can be judged")
        autotuner.cache.clear()
        self._timed, self._chosen = 0, self._number % max(1, count)
        before_each = autotuner.pre_hook
        if not self._runs:  # a call whose choice is known resets nothing
            autotuner.pre_hook = lambda *args, **kwargs: None
        try:
            return run(autotuner, *args, **kwargs)
        finally:
            autotuner.pre_hook = before_each

    def time(self, kernel_call: Any, quantiles: Any) -> list[float]:
        """An autotuner's timing of its next configuration: the chosen one is the fastest."""
        place, self._timed = self._timed, self._timed + 1
        if self._runs:
            with notes.tuning():
                kernel_call()
        return [float(place != self._chosen)] * len(quantiles)


tuning = Tuning()


def patch_autotuners() -> None:
    """Have every autotuner of this process choose as `tuning` says."""
    from triton.runtime.autotuner import Autotuner

    run = Autotuner.run
    Autotuner.do_bench = property(lambda self: tuning.time)
    Autotuner.run = lambda self, *args, **kwargs: tuning.tune(run, self, args, kwargs)
