"""The return type for every model's `build`: a training step's parts, split at the phase boundaries."""

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
    """A model and everything that trains it.

    Attributes:
        model: The model.
        optimizer: Its optimizer.
        batches: Yields batches without end.
        forward: Returns the model's output for a batch.
        loss: Returns the scalar loss for an output and its batch.
        grad_clip: Maximum gradient norm; 0 disables clipping.
        scaler: Scales the loss before backward, and skips the optimizer step if gradients are not finite; or None.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    batches: Iterator[Batch]
    forward: Callable[[Batch], Tensor]
    loss: Callable[[Tensor, Batch], Tensor]
    grad_clip: float = 0.0
    scaler: torch.amp.GradScaler | None = None

    def step(self, batch: Batch, phase: Phase = lambda name: nullcontext()) -> Tensor:
        """Run one training step and return the loss, whose graph has been freed.

        Args:
            batch: One batch from `batches`.
            phase: Returns a context manager for a phase name, entered around each phase.
        """
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
