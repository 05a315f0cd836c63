"""What a model file's `build` returns: everything that a training step needs, split where its phases meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

Batch: TypeAlias = tuple[Any, ...]
Phase: TypeAlias = Callable[[str], AbstractContextManager[Any]]


@dataclass
class Training:
    """A model and what trains it.

    batches: yields batches without end. forward: the model's output for a batch. loss: the scalar loss of an output
    and its batch. grad_clip: the largest gradient norm, 0 for no clipping. scaler: scales the loss before backward, and
    leaves out a step of gradients that are not finite.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    batches: Iterator[Batch]
    forward: Callable[[Batch], Tensor]
    loss: Callable[[Tensor, Batch], Tensor]
    grad_clip: float = 0.0
    scaler: torch.amp.GradScaler | None = None

    def step(self, batch: Batch, phase: Phase = lambda name: nullcontext()) -> Tensor:
        """One training step; returns the loss, its graph used up. phase: entered around each phase, by its name."""
        with phase("forward"):
            output = self.forward(batch)
        with phase("loss"):
            loss = self.loss(output, batch)
        with phase("backward"):
            (self.scaler.scale(loss) if self.scaler else loss).backward()  # type: ignore[no-untyped-call]
        if self.grad_clip:
            with phase("clip"):
                if self.scaler:
                    self.scaler.unscale_(self.optimizer)
                nn.utils.clip_grad_norm_(self.model.parameters(), self.grad_clip)
        with phase("optimizer"):
            if self.scaler:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        return loss


def choose(value: str, choices: tuple[str, ...], name: str) -> None:
    """Raise ValueError unless `value` is one of the choices for the setting `name`."""
    if value not in choices:
        raise ValueError(f"{name} {value!r} is not one of: {', '.join(choices)}")


def require_positive(config: Any, *names: str) -> None:
    """Raise ValueError unless these settings are above zero."""
    for name in names:
        if getattr(config, name) <= 0:
            raise ValueError(f"{name} {getattr(config, name)} is not above 0")
