"""Train on a device with the library's kernels, and run the same training on the CPU as a reference.

Two correct implementations that round in another order drift apart, so rounding sets the tolerance. The CPU's training
is repeated with every result truncated at random (enable/train/rounding.py). The device may be `MARGIN` times as far
from the reference as those runs are. docs/run.md has the measurements.
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
from enable.progress import track
from enable.train.draws import Around, Drawing
from enable.train.rounding import Truncating
from traces import UserError
from traces.program import program_name

MARGIN = 8.0  # times the deviation that truncation causes
TRUNCATED = 2  # runs of the reference with truncated results
EPS = torch.finfo(torch.float32).eps  # relative; the smallest tolerance is MARGIN times this


class Stopped(Exception):
    """Raised if the device cannot continue; the message is one line."""


@dataclass(frozen=True)
class Recipe:
    """The training to run.

    Attributes:
        model: Model name or factory.
        settings: Model settings as text, by name.
        batch: Batch size, or None for the model's default.
        optimizer: Optimizer name, or None for the model's default.
        seed: Seed for the model's settings and for the generator. If it is None, the model keeps its own and the
            generator gets 0.
        steps: Number of steps.
    """

    model: str
    settings: Mapping[str, str] = field(default_factory=dict)
    batch: int | None = None
    optimizer: str | None = None
    seed: int | None = None
    steps: int = 1

    def words(self) -> list[str]:
        """Return the recipe as arguments of `enable capture`."""
        options = {"--batch": self.batch, "--optimizer": self.optimizer}
        option_words = [word for name, value in options.items() if value is not None for word in (name, str(value))]
        return [
            self.model,
            *option_words,
            *(w for name, text in self.settings.items() for w in ("--set", f"{name}={text}")),
        ]

    def build(self, device: str) -> CaptureTarget:
        """Build the target with the same weights and the same data each time.

        Raises:
            UserError: The model cannot be built on this device.
        """
        torch.manual_seed(self.seed or 0)
        seed = {} if self.seed is None else {"seed": str(self.seed)}
        target = load_target(self.model, {**self.settings, **seed}, self.batch, self.optimizer, device)
        if target.device and torch.device(target.device).type != device:
            raise UserError(f"{self.model}: was built on {target.device}, not on {device}; use its setting 'device'")
        torch.manual_seed(self.seed or 0)
        return target


@dataclass(frozen=True)
class Step:
    """The results of one step.

    Attributes:
        loss: Loss before the update.
        gradient_norm: Norm of all gradients together, before clipping; None if it cannot be observed.
        seconds: Duration.
    """

    loss: float
    gradient_norm: float | None
    seconds: float


def train(target: CaptureTarget, steps: int, around: Around = nullcontext) -> Iterator[Step]:
    """Train from the start and yield each step as it ends; a step's exceptions pass through.

    `around` makes the context for each step.
    """
    for _ in range(steps):
        batch = next(target.training.batches, None)
        norm = _GradientNorm(target.training.model)
        started = time.perf_counter()
        with around():
            loss = _number(target.name, target.training.step(batch, norm.phase))
        yield Step(loss, norm.value, time.perf_counter() - started)


def _number(model: str, loss: Any) -> float:
    """Return the loss as a float. Raise UserError if it is no scalar."""
    if isinstance(loss, torch.Tensor) and loss.numel() == 1 and not loss.is_complex():
        return float(loss.item())
    if isinstance(loss, int | float):
        return float(loss)
    raise UserError(f"{model}: a step returned {type(loss).__name__}, not a loss; return the loss as a scalar")


class _GradientNorm:
    """Computes the gradients' Euclidean norm when the phase "backward" ends, in float64 on the host."""

    def __init__(self, model: nn.Module | None) -> None:
        self._model = model
        self.value: float | None = None

    def phase(self, name: str) -> AbstractContextManager[Any]:
        """Return the context for a phase."""
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
    """The CPU's training, with the tolerance for a correct one, step by step.

    Attributes:
        loss: Losses.
        loss_tolerance: Allowed deviation from them.
        norm: Gradient norms; None if there are none.
        norm_tolerance: Allowed deviation from them; None if there are none.
    """

    loss: list[float]
    loss_tolerance: list[float]
    norm: list[float | None]
    norm_tolerance: list[float | None]

    def agrees(self, index: int, step: Step) -> bool:
        """Return True if a step's loss and gradient norm are within tolerance of the CPU's."""
        norms = (step.gradient_norm, self.norm[index], self.norm_tolerance[index])
        return _near(step.loss, self.loss[index], self.loss_tolerance[index]) and (
            None in norms or _near(*norms)  # type: ignore[arg-type]
        )


def _near(value: float, reference: float, tolerance: float) -> bool:
    """Return True if the values are equal, both NaN, or within the tolerance."""
    same = value == reference or (math.isnan(value) and math.isnan(reference))
    return same or abs(value - reference) <= tolerance


def compare_with_cpu(recipe: Recipe, drawing: Drawing) -> Comparison:
    """Run the reference and its truncated variants.

    `drawing` makes them draw the device's random numbers.

    Raises:
        UserError: The model does not train on the CPU.
        Incomparable: The model draws other random numbers than on the device.
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


def tolerances(reference: list[float], *other_runs: list[float]) -> list[float]:
    """Return for each step `MARGIN` times the largest deviation so far, at least the reference's own precision."""
    allowed, largest = [], 0.0
    for index, value in enumerate(reference):
        deviations = [abs(other[index] - value) for other in other_runs]
        largest = max(largest, *(d for d in deviations if math.isfinite(d)), 0.0)
        allowed.append(MARGIN * max(largest, EPS * abs(value)))
    return allowed


def _on_cpu(recipe: Recipe, title: str, around: Around, drawing: Drawing) -> list[Step]:
    """Train on the CPU with progress output, and return all steps."""
    target = recipe.build("cpu")
    try:
        with around(), drawing() as each_step:
            return list(track(train(target, recipe.steps, each_step), recipe.steps, title))
    except (RuntimeError, MemoryError) as error:
        raise UserError(
            f"{recipe.model}: does not train on the CPU ({_line(error)}); see: {program_name()} models"
        ) from error


def on_device(
    recipe: Recipe, device: str, around: Around = nullcontext, prepare: Callable[[CaptureTarget], None] | None = None
) -> Iterator[Step]:
    """Train on an accelerator and yield each step.

    Args:
        recipe: The training.
        device: Device type.
        around: Makes the context for each step.
        prepare: Called with the target before the first step.

    Raises:
        UserError: The target cannot be built.
        Stopped: A step raised an exception.
    """
    target = recipe.build(device)
    if prepare is not None:
        prepare(target)
    with warnings.catch_warnings():
        # NumPy warns about lanes that are masked out.
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"triton\.runtime\.interpreter")
        try:
            yield from train(target, recipe.steps, around)
        except Exception as error:  # noqa: BLE001 - kernels and a user's own step may raise anything
            if isinstance(error, UserError) and error.__cause__ is None:
                raise
            raise Stopped(_line(error.__cause__ or error)) from error


def _line(error: BaseException) -> str:
    """Return an error's first line; only its first sentence if PyTorch reports a missing operator or dispatch key."""
    first = str(error).strip().partition("\n")[0].partition(". This could be because")[0][:300]
    return first if isinstance(error, NotImplementedError) else f"{type(error).__name__}: {first}"
