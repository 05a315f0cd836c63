"""Recommendation model with a cross network beside an MLP (DCN-v2), on generated clicks or a Criteo file.

The embeddings of the categories and the dense features are one vector x0. Each cross layer multiplies x0 with a
projection of its input, so that l layers give every product of up to l + 1 features; the projection is a matrix, or a
mixture of experts of low rank. The cross network and the MLP stand side by side or one upon the other; a linear layer
turns what they give into the logit of a click. Architecture: arXiv:2008.13535.
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
    """Settings of every model of clicks, and: rank: of an expert's projection; 0 for one full matrix a cross layer.
    experts: of each cross layer of low rank. structure: whether the MLP gets x0, or what the cross network gives.
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
    """The model, its optimizer and its data on `device`."""
    torch.manual_seed(config.seed)
    return click_training(DCN(config).to(device), F.binary_cross_entropy_with_logits, config, device)


class DCN(nn.Module):
    """Dense features [B, 13] and categories to the logit of a click, [B, 1]."""

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
        """offsets: [tables, B]; indices: [tables, B * lookups]."""
        pooled = [table(indices[i], offsets[i]) for i, table in enumerate(self.tables)]
        x0 = torch.cat([dense, *pooled], dim=1)  # [B, width]
        x = x0
        for cross in self.cross:
            x = cross(x0, x)
        features = torch.cat([x, self.deep(x0)], dim=1) if self.parallel else self.deep(x)
        logit: Tensor = self.top(features)
        return logit


class FullCross(nn.Module):
    """x0 * (W x + b) + x, each [B, width]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, width)
        nn.init.xavier_normal_(self.project.weight)
        nn.init.zeros_(self.project.bias)

    def forward(self, x0: Tensor, x: Tensor) -> Tensor:
        return torch.addcmul(x, x0, self.project(x))


class LowRankCross(nn.Module):
    """The sum over experts of gate * x0 * (U tanh(C tanh(V x)) + b), and x, each [B, width].

    V: [rank, width], C: [rank, rank] and U: [width, rank] of each expert; b: [width]. The gates are a softmax, so they
    sum to 1 and b needs none; gating before U makes one product of all experts.
    """

    def __init__(self, width: int, rank: int, experts: int) -> None:
        super().__init__()
        self.experts = experts
        self.gate = nn.Linear(width, experts, bias=False)
        self.reduce = nn.Linear(width, experts * rank, bias=False)  # V of all experts
        self.inner = nn.Parameter(torch.empty(experts, rank, rank))  # C, transposed
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
