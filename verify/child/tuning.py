"""Make autotuners use the configuration that the judge selects, instead of choosing by time.

The judge selects each configuration in turn.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from verify.child.guards import notes

MAX_CONFIGURATIONS = 64  # per autotuner; all of them are judged
TUNES = 1  # Seed of a call in which autotuners run every configuration to choose one; in other calls they have chosen.


class Tuning:
    """Selection for one request; `number` is the index of the configuration, modulo their count."""

    def __init__(self) -> None:
        self.configure(0, False)

    def configure(self, number: int, runs: bool) -> None:
        """Set the selection; with `runs`, autotuners run every configuration before they use the selected one."""
        self._number, self._runs = number, runs
        self._timed = self._chosen = 0

    def tune(self, run: Any, autotuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the autotuner's own `run`, which chooses again; raise ValueError for too many configurations."""
        count = len(autotuner.configs)
        notes.configurations = max(notes.configurations, count)
        if count > MAX_CONFIGURATIONS:
            raise ValueError(f"{count} configurations of an autotuner; at most {MAX_CONFIGURATIONS} can be judged")
        for config in autotuner.configs:  # a function that prunes them may not change them for later calls
            config.kwargs = MappingProxyType(dict(config.kwargs))
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
        """Replace the timing of the next configuration: the selected one is the fastest."""
        index, self._timed = self._timed, self._timed + 1
        if self._runs:
            with notes.tuning():
                kernel_call()
        return [float(index != self._chosen)] * len(quantiles)


tuning = Tuning()


def patch_autotuners() -> None:
    """Make every autotuner in this process choose as `tuning` says."""
    from triton.runtime.autotuner import Autotuner

    run = Autotuner.run
    Autotuner.do_bench = property(lambda self: tuning.time)
    Autotuner.run = lambda self, *args, **kwargs: tuning.tune(run, self, args, kwargs)
