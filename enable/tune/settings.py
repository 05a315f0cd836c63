"""Autotune without a language model: time all settings in the kernel's own space and keep the best of each class."""

from __future__ import annotations

import math
from collections import defaultdict

from enable.progress import say
from enable.tune.tuning import NOT_FASTER, Tuned, TunedOperator, tuned
from generate.kernel_search.measurement import ROUNDS, Gain, KernelTimer, Measurement
from generate.kernel_search.space import Setting, Space, fixed, size_class, with_rows

NEAR = 1.01  # a setting must be this much faster than the default to replace it


def chosen(tuning: TunedOperator, timer: KernelTimer) -> Tuned:
    """Time every setting, write the table, and accept the file as any other candidate."""
    overload, written = tuning.operator.overload, tuning.kernel.written
    space = Space.of(written, str(tuning.kernel.path))
    settings = space.settings
    measured = tuning.time(timer, [written, *(fixed(written, s) for s in settings)], ROUNDS)
    best = choices(tuning, space, measured)
    for number, setting in sorted(best.items()):
        say(f"{overload}  2^{number} elements: {space.named(setting)}")
    source = with_rows(written, space.chosen(measured.device.target, best))
    if source == written:
        return _ended(tuning, "the settings in force are the best of each class", len(settings))
    learned = _learned(space, best, measured.device.target)
    trial = tuning.accept(timer, source, {"model": "none", "settings": len(settings)}, learned)
    if trial.path:
        return tuned(tuning, trial, f"{len(settings)} settings were timed", len(settings))
    return _ended(tuning, trial.reason, len(settings), trial.gain)


def choices(tuning: TunedOperator, space: Space, measured: Measurement) -> dict[int, Setting]:
    """Return for each shape class the setting with the least geometric mean time.

    The default stays unless another setting is faster by the factor NEAR.
    """
    classes: dict[int, list[str]] = defaultdict(list)
    for shape in tuning.shapes:
        classes[size_class(shape.elements)].append(shape.name)
    best = {}
    for number, names in classes.items():
        logs = {
            setting: sum(math.log(measured.times[k][name].median) for name in names) / len(names)
            for k, setting in enumerate(space.settings, 1)
        }
        fastest = min(logs, key=lambda s: logs[s])
        default = logs.get(space.default, math.inf)
        best[number] = fastest if logs[fastest] < default - math.log(NEAR) else space.default
    return best


def _learned(space: Space, best: dict[int, Setting], target: str) -> str:
    """Describe the best settings in at most 300 characters."""
    best_settings = "; ".join(
        f"from 2^{number} elements {space.named(setting)}" for number, setting in sorted(best.items())
    )
    return f"of the settings {', '.join(space.names)} the fastest on {target} are: {best_settings}"[:300]


def _ended(tuning: TunedOperator, why: str, count: int, gain: Gain | None = None) -> Tuned:
    """Return the result if no setting was accepted."""
    return Tuned(tuning.operator.overload, NOT_FASTER, why, gain=gain, candidates=count, shapes=len(tuning.shapes))
