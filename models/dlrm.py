"""Recommendation model with sparse embedding tables (DLRM), on generated clicks or a Criteo file.

Dense features pass through the bottom MLP, and categories through embedding tables. The dot products of all pairs of
the resulting vectors feed the top MLP, which returns the click probability. Architecture: arXiv:1906.00091.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.criteo import DENSE, Settings, click_training, mlp, table
from models.training import Training

BOTTOM = (DENSE, 512, 256, 64)  # followed by the width of an embedding
TOP = (512, 256, 1)


@dataclass(frozen=True)
class Config(Settings):
    """Settings; the same as for every click model."""


def build(config: Config, device: str = "cpu") -> Training:
    """Build the model, its optimizer and its data on `device`."""
    torch.manual_seed(config.seed)
    return click_training(DLRM(config).to(device), F.binary_cross_entropy, config, device)


class DLRM(nn.Module):
    """Map dense features [B, 13] and categories to the click probability [B, 1]."""

    pairs: Tensor  # [2, vectors * (vectors - 1) / 2], row and column of each product that is used

    def __init__(self, config: Config) -> None:
        super().__init__()
        vectors = config.tables + 1
        self.bottom = mlp((*BOTTOM, config.dim), nn.ReLU())
        self.tables = nn.ModuleList(table(config.rows, config.dim, config.sparse) for _ in range(config.tables))
        self.top = mlp((config.dim + vectors * (vectors - 1) // 2, *TOP), nn.Sigmoid())
        self.register_buffer("pairs", torch.tril_indices(vectors, vectors, offset=-1), persistent=False)

    def forward(self, dense: Tensor, offsets: Tensor, indices: Tensor) -> Tensor:
        """Return [B, 1]. `offsets` is [tables, B], and `indices` is [tables, B * lookups]."""
        x = self.bottom(dense)  # [B, dim]
        pooled = [table(indices[i], offsets[i]) for i, table in enumerate(self.tables)]
        probability: Tensor = self.top(self.interact(x, pooled))
        return probability

    def interact(self, x: Tensor, pooled: list[Tensor]) -> Tensor:
        """Return x and the dot products of all vector pairs: [B, dim + pairs]."""
        vectors = torch.cat([x, *pooled], dim=1).view(x.size(0), -1, x.size(1))  # [B, vectors, dim]
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        below = products[:, self.pairs[0], self.pairs[1]]
        return torch.cat([x, below], dim=1)
