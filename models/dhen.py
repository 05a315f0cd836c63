"""Recommendation model of layers that each run several interactions side by side (DHEN), on clicks or a Criteo file.

Dense features and categories become tokens: vectors with one width. A layer passes its tokens to several interaction
modules at once: dot products of all pairs, a cross layer, self attention, a linear map. Their output tokens are summed
or concatenated. Then the layer's own tokens are added, mapped if their number differs, and the result is normalised.
An MLP turns the last tokens into the click logit. Architecture: arXiv:2203.11014.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.criteo import DENSE, Settings, click_training, mlp, table
from models.training import Training, choose, require_positive

ENSEMBLES = ("concat", "sum")
BOTTOM = (DENSE, 64)  # followed by the width of a token
HIDDEN = 64  # hidden width in modules that are an MLP
TOP = (128, 1)


@dataclass(frozen=True)
class Config(Settings):
    """Settings that all click models share, and those specific to DHEN.

    Attributes:
        lookups: As for every click model.
        layers: Layers in the stack.
        interactions: Interactions in each layer, in this order, separated by commas.
        tokens: Tokens that one interaction module returns.
        heads: Heads in the self attention.
        ensemble: "concat" or "sum", the way in which the modules' tokens are combined.
    """

    lookups: int = 1
    layers: int = 2
    interactions: str = "dot,cross,attention,linear"
    tokens: int = 8
    heads: int = 2
    ensemble: str = "concat"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "layers", "tokens", "heads")
        choose(self.ensemble, ENSEMBLES, "ensemble")
        for name in self.names:
            choose(name, tuple(INTERACTIONS), "interaction")
        if self.dim % self.heads:
            raise ValueError(f"dim {self.dim} is not a multiple of heads {self.heads}")
        if "dot" in self.names and self.layers > 1 and self.outputs < 2:
            raise ValueError(f"tokens {self.tokens} leaves no pair to the dot products of the second layer")

    @property
    def names(self) -> list[str]:
        """Return the interactions in a layer."""
        return self.interactions.split(",")

    @property
    def outputs(self) -> int:
        """Return the number of tokens that a layer returns."""
        return self.tokens * (len(self.names) if self.ensemble == "concat" else 1)


def build(config: Config, device: str = "cpu") -> Training:
    """Build the model, its optimizer and its data on `device`."""
    torch.manual_seed(config.seed)
    return click_training(DHEN(config).to(device), F.binary_cross_entropy_with_logits, config, device)


class DHEN(nn.Module):
    """Map dense features [B, 13] and categories to the click logit [B, 1]."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.bottom = mlp((*BOTTOM, config.dim), nn.ReLU())
        self.tables = nn.ModuleList(table(config.rows, config.dim, config.sparse) for _ in range(config.tables))
        self.layers = nn.ModuleList()
        tokens = config.tables + 1
        for _ in range(config.layers):
            self.layers.append(HierarchyLayer(tokens, config))
            tokens = config.outputs
        self.top = mlp((tokens * config.dim, *TOP), nn.Identity())

    def forward(self, dense: Tensor, offsets: Tensor, indices: Tensor) -> Tensor:
        """Return [B, 1]. `offsets` is [tables, B], and `indices` is [tables, B * lookups]."""
        pooled = [table(indices[i], offsets[i]) for i, table in enumerate(self.tables)]
        x = torch.stack([self.bottom(dense), *pooled], dim=1)  # [B, tokens, dim]
        for layer in self.layers:
            x = layer(x)
        logit: Tensor = self.top(x.flatten(1))
        return logit


class HierarchyLayer(nn.Module):
    """An ensemble of interactions with a residual and layer norm: [B, inputs, dim] to [B, outputs, dim]."""

    def __init__(self, inputs: int, config: Config) -> None:
        super().__init__()
        self.concat = config.ensemble == "concat"
        self.interactions = nn.ModuleList(INTERACTIONS[name](inputs, config) for name in config.names)
        self.shortcut = nn.Identity() if inputs == config.outputs else TokenMix(inputs, config.outputs)
        self.norm = nn.LayerNorm(config.dim)

    def forward(self, x: Tensor) -> Tensor:
        outputs = [interaction(x) for interaction in self.interactions]  # each [B, tokens, dim]
        together = torch.cat(outputs, dim=1) if self.concat else torch.stack(outputs).sum(dim=0)
        normalised: Tensor = self.norm(together + self.shortcut(x))
        return normalised


class TokenMix(nn.Module):
    """Weighted sums of the input tokens: [B, inputs, dim] to [B, outputs, dim]."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.mix = nn.Linear(inputs, outputs, bias=False)
        nn.init.xavier_normal_(self.mix.weight)

    def forward(self, x: Tensor) -> Tensor:
        mixed: Tensor = self.mix(x.transpose(1, 2))  # [B, dim, outputs]
        return mixed.transpose(1, 2)


class LinearInteraction(TokenMix):
    """A linear map over the tokens."""

    def __init__(self, inputs: int, config: Config) -> None:
        super().__init__(inputs, config.tokens)


class DotInteraction(nn.Module):
    """Dot products between all token pairs, followed by an MLP."""

    pairs: Tensor  # [2, inputs * (inputs - 1) / 2], row and column of each product that is used

    def __init__(self, inputs: int, config: Config) -> None:
        super().__init__()
        self.register_buffer("pairs", torch.tril_indices(inputs, inputs, offset=-1), persistent=False)
        self.project = mlp((inputs * (inputs - 1) // 2, HIDDEN, config.tokens * config.dim), nn.Identity())

    def forward(self, x: Tensor) -> Tensor:
        products = torch.bmm(x, x.transpose(1, 2))
        projected: Tensor = self.project(products[:, self.pairs[0], self.pairs[1]])
        return projected.view(len(x), -1, x.size(2))


class CrossInteraction(nn.Module):
    """A cross layer x * (W x + b) + x on the concatenated tokens, followed by a linear map."""

    def __init__(self, inputs: int, config: Config) -> None:
        super().__init__()
        width = inputs * config.dim
        self.cross = mlp((width, width), nn.Identity())
        self.project = mlp((width, config.tokens * config.dim), nn.Identity())

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(1)
        projected: Tensor = self.project(torch.addcmul(flat, flat, self.cross(flat)))
        return projected.view(len(x), -1, x.size(2))


class AttentionInteraction(nn.Module):
    """Self attention between tokens with a residual and layer norm, followed by a linear map over the tokens."""

    def __init__(self, inputs: int, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.query_key_value = nn.Linear(config.dim, 3 * config.dim)
        self.output = nn.Linear(config.dim, config.dim)
        self.norm = nn.LayerNorm(config.dim)
        self.mix = TokenMix(inputs, config.tokens)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (  # each [B, heads, T, C / heads]
            part.view(B, T, self.heads, -1).transpose(1, 2) for part in self.query_key_value(x).split(C, dim=2)
        )
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, T, C)
        mixed: Tensor = self.mix(self.norm(x + self.output(attended)))
        return mixed


INTERACTIONS: dict[str, type[nn.Module]] = {
    "dot": DotInteraction,
    "cross": CrossInteraction,
    "attention": AttentionInteraction,
    "linear": LinearInteraction,
}
