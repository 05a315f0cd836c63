"""Recommendation model with a cross network beside an MLP (DCN-v2), on generated clicks or a Criteo file.

The embeddings of the categories and the dense features form one vector x0. Each cross layer multiplies x0 by a
projection of its input, so l layers produce every product of up to l + 1 features. The projection is a full matrix or
a mixture of low-rank experts. Cross network and MLP are parallel or stacked, and a linear layer turns their output into
the click logit. Architecture: arXiv:2008.13535.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.criteo import DENSE, Settings, click_training, mlp, table
from models.training import Training, choose, require_positive

STRUCTURES = ("parallel", "stacked")
DEEP = (256, 128)  # widths of the MLP


@dataclass(frozen=True)
class Config(Settings):
    """Settings that all click models share, and those specific to DCN-v2.

    Attributes:
        lookups: As for every click model.
        cross_layers: Cross layers.
        rank: Rank of an expert's projection; 0 for one full matrix in each cross layer.
        experts: Experts in each low-rank cross layer.
        structure: "parallel" feeds x0 to the MLP, "stacked" the output of the cross network.
    """

    lookups: int = 1
    cross_layers: int = 3
    rank: int = 32
    experts: int = 4
    structure: str = "parallel"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "cross_layers", "experts")
        choose(self.structure, STRUCTURES, "structure")
        if self.rank < 0:
            raise ValueError(f"rank {self.rank} is below 0, which stands for a full matrix")


def build(config: Config, device: str = "cpu") -> Training:
    """Build the model, its optimizer and its data on `device`."""
    torch.manual_seed(config.seed)
    return click_training(DCN(config).to(device), F.binary_cross_entropy_with_logits, config, device)


class DCN(nn.Module):
    """Map dense features [B, 13] and categories to the click logit [B, 1]."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = DENSE + config.tables * config.dim
        self.parallel = config.structure == "parallel"
        self.tables = nn.ModuleList(table(config.rows, config.dim, config.sparse) for _ in range(config.tables))
        self.cross = nn.ModuleList(
            LowRankCross(width, config.rank, config.experts) if config.rank else FullCross(width)
            for _ in range(config.cross_layers)
        )
        self.deep = mlp((width, *DEEP), nn.ReLU())
        self.top = mlp((DEEP[-1] + width * self.parallel, 1), nn.Identity())

    def forward(self, dense: Tensor, offsets: Tensor, indices: Tensor) -> Tensor:
        """Return [B, 1]. `offsets` is [tables, B], and `indices` is [tables, B * lookups]."""
        pooled = [table(indices[i], offsets[i]) for i, table in enumerate(self.tables)]
        x0 = torch.cat([dense, *pooled], dim=1)  # [B, width]
        x = x0
        for cross in self.cross:
            x = cross(x0, x)
        features = torch.cat([x, self.deep(x0)], dim=1) if self.parallel else self.deep(x)
        logit: Tensor = self.top(features)
        return logit


class FullCross(nn.Module):
    """Cross layer with a full matrix: x0 * (W x + b) + x, each [B, width]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, width)
        nn.init.xavier_normal_(self.project.weight)
        nn.init.zeros_(self.project.bias)

    def forward(self, x0: Tensor, x: Tensor) -> Tensor:
        return torch.addcmul(x, x0, self.project(x))


class LowRankCross(nn.Module):
    """Cross layer with low-rank experts: sum(gate * x0 * (U tanh(C tanh(V x)) + b)) + x over experts, each [B, width].

    Each expert has V [rank, width], C [rank, rank] and U [width, rank]; b is [width]. The gates are a softmax and sum
    to 1, so b needs no gate. Gating before U turns all experts' expansions into one matrix product.
    """

    def __init__(self, width: int, rank: int, experts: int) -> None:
        super().__init__()
        self.experts = experts
        self.gate = nn.Linear(width, experts, bias=False)
        self.reduce = nn.Linear(width, experts * rank, bias=False)  # V of all experts
        self.inner = nn.Parameter(torch.empty(experts, rank, rank))  # C of all experts, transposed
        self.expand = nn.Linear(experts * rank, width)  # U of all experts, and b
        for weight in (self.gate.weight, self.reduce.weight, *self.inner, self.expand.weight):
            nn.init.xavier_normal_(weight)
        nn.init.zeros_(self.expand.bias)

    def forward(self, x0: Tensor, x: Tensor) -> Tensor:
        gates = self.gate(x).softmax(dim=1)  # [B, experts]
        reduced = self.reduce(x).tanh().view(len(x), self.experts, -1)  # [B, experts, rank]
        inner = torch.bmm(reduced.transpose(0, 1), self.inner).tanh()  # [experts, B, rank]
        gated = inner.transpose(0, 1) * gates.unsqueeze(2)
        return torch.addcmul(x, x0, self.expand(gated.reshape(len(x), -1)))
