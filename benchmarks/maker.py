"""What the tables of calls are written in: tensors of one floating dtype on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

_ATTENTION = ((768,), (768,), (768, 2304), (2304,), (768, 768), (768,))
_PERCEPTRON = ((768,), (768,), (768, 3072), (3072,), (3072, 768), (768,))


class Maker:
    """dtype: of what is drawn from floating-point distributions. of: what creation operators are given by name."""

    def __init__(self, dtype: torch.dtype, device: str) -> None:
        self.of: dict[str, Any] = {"dtype": dtype, "device": device}
        self.device = device

    def __call__(self, *shape: int) -> torch.Tensor:
        """Normal."""
        return torch.randn(shape, **self.of)

    def unit(self, *shape: int) -> torch.Tensor:
        """Uniform in [0, 1)."""
        return torch.rand(shape, **self.of)

    def below(self, most: int, *shape: int) -> torch.Tensor:
        """Indices from 0."""
        return torch.randint(most, shape, device=self.device)

    def mask(self, *shape: int) -> torch.Tensor:
        return torch.rand(shape, device=self.device) < 0.5

    def complex(self, *shape: int) -> torch.Tensor:
        return torch.complex(self(*shape), self(*shape))

    def number(self, value: float) -> torch.Tensor:
        """float32 without dimensions, whatever the dtype of the others."""
        return torch.full((), value, dtype=torch.float32, device=self.device)

    @property
    def single(self) -> Maker:
        """Of float32."""
        return Maker(torch.float32, self.device)

    @property
    def other(self) -> Maker:
        """Of bfloat16 where this one is of float32, of float32 else."""
        return Maker(torch.bfloat16 if self.of["dtype"] == torch.float32 else torch.float32, self.device)


Arguments: TypeAlias = Callable[[Maker], Sequence[Any]]  # a dict at the end holds those by name
Table: TypeAlias = dict[str, list[Arguments]]


def blocks(draw: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
    """Parameters of four blocks of the smallest GPT-2, 48 tensors."""
    return [draw(*shape) for shape in (*_ATTENTION, *_PERCEPTRON) * 4]
