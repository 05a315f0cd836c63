"""Training on a device that has the library's kernels, and the same training on the CPU beside it.

Two right implementations that round in another order drift apart, so a difference is judged by what rounding explains:
the CPU's training is repeated with every result truncated at random (enable/train/rounding.py), and the device may be
`MARGIN` times as far from the reference as those are. What was measured is in docs/run.md.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

from capture.targets import CaptureTarget, load_target
from enable.progress import over
from enable.train.draws import Around, Drawing
from enable.train.rounding import Truncating
from traces import UserError

MARGIN = 8.0  # times the deviation that truncation causes
TRUNCATED = 2  # runs of the reference with truncated results
EPS = torch.finfo(torch.float32).eps  # relative; the least that is allowed is MARGIN of it


class Stopped(Exception):
    """The device could not go on: one line."""


@dataclass(frozen=True)
class Recipe:
    """What to train. settings: as text, by name. seed: of the model's settings and of the generator; None: its own."""

    model: str
    settings: Mapping[str, str] = field(default_factory=dict)
    batch: int | None = None
    optimizer: str | None = None
    seed: int | None = None
    steps: int = 1

    def words(self) -> list[str]:
        """As arguments of `enable capture`."""
        options = {"--batch": self.batch, "--optimizer": self.optimizer}
        given = [word for name, value in options.items() if value is not None for word in (name, str(value))]
        return [self.model, *given, *(w for name, text in self.settings.items() for w in ("--set", f"{name}={text}"))]

    def build(self, device: str) -> CaptureTarget:
        """The same weights and the same data each time. Raises UserError."""
        torch.manual_seed(self.seed or 0)
        seed = {} if self.seed is None else {"seed": str(self.seed)}
        target = load_target(self.model, {**self.settings, **seed}, self.batch, self.optimizer, device)
        if target.device and torch.device(target.device).type != device:
            raise UserError(f"{self.model}: was built on {target.device}, not on {device}; use its setting 'device'")
        torch.manual_seed(self.seed or 0)
        return target


@dataclass(frozen=True)
class Step:
    """loss: before the step. gradient_norm: of all parameters together, before clipping; None if not to be seen."""

    loss: float
    gradient_norm: float | None
    seconds: float


def train(target: CaptureTarget, steps: int, around: Around = nullcontext) -> Iterator[Step]:
    """Train from the start, yielding each step as it ends. What a step raises passes through. around: makes the context
    of each."""
    for _ in range(steps):
        batch = next(target.training.batches, None)
        norm = _GradientNorm(target.training.model)
        started = time.perf_counter()
        with around():
            loss = _number(target.name, target.training.step(batch, norm.phase))
        yield Step(loss, norm.value, time.perf_counter() - started)


def _number(model: str, loss: Any) -> float:
    if isinstance(loss, torch.Tensor) and loss.numel() == 1 and not loss.is_complex():
        return float(loss.item())
    if isinstance(loss, int | float):
        return float(loss)
    raise UserError(f"{model}: a step returned {type(loss).__name__}, not a loss; return the loss as a scalar")


class _GradientNorm:
    """Takes the Euclidean norm of the gradients when the phase "backward" ends, computed in float64 on the host."""

    def __init__(self, model: nn.Module | None) -> None:
        self._model = model
        self.value: float | None = None

    def phase(self, name: str) -> AbstractContextManager[Any]:
        return self._measured() if name == "backward" and self._model is not None else nullcontext()

    @contextmanager
    def _measured(self) -> Iterator[None]:
        yield
        assert self._model is not None
        gradients = [p.grad.detach().cpu() for p in self._model.parameters() if p.grad is not None]
        squares = [(g.coalesce().values() if g.is_sparse else g).double().square().sum().item() for g in gradients]
        self.value = math.sqrt(sum(squares))


@dataclass
class Comparison:
    """The CPU's training, and how far from it a right one may be, step by step.

    Lists of losses and gradient norms; those of norms hold None where there are none.
    """

    loss: list[float]
    loss_tolerance: list[float]
    norm: list[float | None]
    norm_tolerance: list[float | None]

    def agrees(self, index: int, step: Step) -> bool:
        """Whether a step of the device is as near to the CPU's as rounding explains, in loss and gradient norm."""
        norms = (step.gradient_norm, self.norm[index], self.norm_tolerance[index])
        return _near(step.loss, self.loss[index], self.loss_tolerance[index]) and (
            None in norms or _near(*norms)  # type: ignore[arg-type]
        )


def _near(value: float, reference: float, tolerance: float) -> bool:
    same = value == reference or (math.isnan(value) and math.isnan(reference))
    return same or abs(value - reference) <= tolerance


def compare_with_cpu(recipe: Recipe, drawing: Drawing) -> Comparison:
    """Run the reference and its truncated variants. drawing: makes them draw the random numbers that the device draws.

    Raises UserError where the model does not train on the CPU, Incomparable where it draws otherwise than the device.
    """
    runs = [_on_cpu(recipe, "reference", nullcontext, drawing)]
    for i in range(TRUNCATED):
        runs.append(_on_cpu(recipe, f"reference, truncated {i + 1}", partial(Truncating, i), drawing))
    losses = [[step.loss for step in run] for run in runs]
    norms = [[step.gradient_norm for step in run] for run in runs]
    measured = all(norm is not None for run in norms for norm in run)
    nothing: list[float | None] = [None] * recipe.steps
    tolerance: list[float | None] = [*tolerances(*norms)] if measured else nothing  # type: ignore[arg-type]
    return Comparison(losses[0], tolerances(*losses), norms[0] if measured else nothing, tolerance)


def tolerances(reference: list[float], *others: list[float]) -> list[float]:
    """By step: `MARGIN` times the largest deviation of the others so far, or of the reference's own precision."""
    allowed, largest = [], 0.0
    for index, value in enumerate(reference):
        deviations = [abs(other[index] - value) for other in others]
        largest = max(largest, *(d for d in deviations if math.isfinite(d)), 0.0)
        allowed.append(MARGIN * max(largest, EPS * abs(value)))
    return allowed


def _on_cpu(recipe: Recipe, what: str, around: Around, drawing: Drawing) -> list[Step]:
    target = recipe.build("cpu")
    try:
        with around(), drawing() as each_step:
            return list(over(train(target, recipe.steps, each_step), recipe.steps, what))
    except (RuntimeError, MemoryError) as error:
        raise UserError(f"{recipe.model}: does not train on the CPU ({_line(error)}); see: enable models") from error


def on_device(
    recipe: Recipe, device: str, around: Around = nullcontext, prepare: Callable[[CaptureTarget], None] | None = None
) -> Iterator[Step]:
    """Train on an accelerator. around: as of `train`. prepare: what is done to the target first. Raises UserError for
    what cannot be built, Stopped for what a step raises."""
    target = recipe.build(device)
    if prepare is not None:
        prepare(target)
    with warnings.catch_warnings():
        # NumPy's, of lanes that a mask leaves out.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"triton\.runtime\.interpreter")
        try:
            yield from train(target, recipe.steps, around)
        except Exception as error:  # noqa: BLE001 - kernels and a user's own step may raise anything
            if isinstance(error, UserError) and error.__cause__ is None:
                raise
            raise Stopped(_line(error.__cause__ or error)) from error


def _line(error: BaseException) -> str:
    """The first line of an error; of PyTorch's about an operator or a key that a device lacks, its first sentence."""
    first = str(error).strip().partition("\n")[0].partition(". This could be because")[0][:300]
    return first if isinstance(error, NotImplementedError) else f"{type(error).__name__}: {first}"
