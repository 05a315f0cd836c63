"""GPT-2-style character-level language model, as in nanoGPT, on a small public-domain text.

Sizes default to nanoGPT's CPU example. The embedding and the output layer share their weights. Attention is causal.
Weight decay applies to matrices but not to vectors. Architecture: https://github.com/karpathy/nanoGPT, after GPT-2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.training import Batch, Training, choose, require_positive

TEXT = Path(__file__).with_name("data") / "public_domain.txt"
OPTIMIZERS = ("adamw", "adamw-foreach", "adamw-fused", "sgd")  # adamw and sgd use a loop over the parameters


@dataclass(frozen=True)
class Config:
    """Settings.

    Attributes:
        n_layer: Transformer blocks.
        n_head: Attention heads.
        n_embd: Width of the residual stream.
        block_size: Tokens in a sequence.
        batch: Sequences in a step.
        bias: True for biases in linear layers and layer norms.
        dropout: Dropout probability.
        bf16: Run forward and loss under bfloat16 autocast.
        f16: Run forward and loss under float16 autocast, with a scaled loss.
        optimizer: One of OPTIMIZERS.
        lr: Learning rate.
        weight_decay: Decay of parameters with two or more dimensions.
        grad_clip: Maximum gradient norm; 0 disables clipping.
        seed: Seed for all random numbers.
    """

    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 128
    block_size: int = 64
    batch: int = 12
    bias: bool = False
    dropout: float = 0.0
    bf16: bool = False
    f16: bool = False
    optimizer: str = "adamw"
    lr: float = 1e-3
    weight_decay: float = 0.1
    grad_clip: float = 1.0
    seed: int = 1337

    def __post_init__(self) -> None:
        require_positive(self, "n_layer", "n_head", "n_embd", "block_size", "batch", "lr")
        choose(self.optimizer, OPTIMIZERS, "optimizer")
        if self.n_embd % self.n_head:
            raise ValueError(f"n_embd {self.n_embd} is not a multiple of n_head {self.n_head}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout {self.dropout} is not a probability below 1")
        if self.bf16 and self.f16:
            raise ValueError("bf16 and f16 are both true; autocast has one dtype")
        if min(self.weight_decay, self.grad_clip) < 0:
            raise ValueError(f"weight_decay {self.weight_decay} or grad_clip {self.grad_clip} is negative")


def build(config: Config, device: str = "cpu") -> Training:
    """Build the model, its optimizer and its data on `device`. Raise ValueError if the text is shorter than a block."""
    tokens, vocabulary = load_text(TEXT)
    if len(tokens) <= config.block_size:
        raise ValueError(f"block_size {config.block_size} is not below the text's {len(tokens)} characters")
    torch.manual_seed(config.seed)
    model = GPT(config, len(vocabulary)).to(device)
    cast: Callable[[Any], Any] = lambda function: function  # noqa: E731 - as autocast is one
    kind = torch.device(device).type
    if config.bf16 or config.f16:
        cast = torch.autocast(kind, torch.bfloat16 if config.bf16 else torch.float16)
    return Training(
        model=model,
        optimizer=make_optimizer(model, config),
        batches=batches(tokens, config, device),
        forward=cast(lambda batch: model(batch[0])),
        loss=cast(cross_entropy),
        grad_clip=config.grad_clip,
        scaler=torch.amp.GradScaler(kind) if config.f16 else None,
    )


def load_text(path: Path) -> tuple[Tensor, list[str]]:
    """Return the text as int64 positions in its sorted character set, and that set."""
    text = path.read_text(encoding="utf-8")
    vocabulary = sorted(set(text))
    position = {character: i for i, character in enumerate(vocabulary)}
    return torch.tensor([position[c] for c in text]), vocabulary


def batches(tokens: Tensor, config: Config, device: str) -> Iterator[Batch]:
    """Yield random blocks and the same blocks one character later, each [batch, block_size], int64."""
    generator = torch.Generator().manual_seed(config.seed)
    while True:
        starts = torch.randint(len(tokens) - config.block_size, (config.batch,), generator=generator).tolist()
        x = torch.stack([tokens[i : i + config.block_size] for i in starts])
        y = torch.stack([tokens[i + 1 : i + 1 + config.block_size] for i in starts])
        yield x.to(device), y.to(device)


def cross_entropy(logits: Tensor, batch: Batch) -> Tensor:
    """Return the mean over all positions for logits [B, T, V] and targets batch[1], [B, T]."""
    return F.cross_entropy(logits.view(-1, logits.size(-1)), batch[1].view(-1), ignore_index=-1)


def make_optimizer(model: nn.Module, config: Config) -> torch.optim.Optimizer:
    """Return AdamW or SGD; only parameters with two or more dimensions decay."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=config.lr, foreach=False)
    foreach, fused = config.optimizer == "adamw-foreach", config.optimizer == "adamw-fused"
    return torch.optim.AdamW(groups, lr=config.lr, betas=(0.9, 0.95), foreach=foreach, fused=fused)


class LayerNorm(nn.Module):
    """Layer normalisation with an optional bias."""

    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class CausalSelfAttention(nn.Module):
    """Multi-head attention in which a position attends to itself and to earlier positions."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.resid_dropout = nn.Dropout(config.dropout)
        self.n_head = config.n_head
        self.dropout = config.dropout

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (  # each [B, n_head, T, C / n_head]
            part.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for part in self.c_attn(x).split(C, dim=2)
        )
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=p, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        out: Tensor = self.resid_dropout(self.c_proj(y))
        return out


class MLP(nn.Module):
    """Two linear layers with GELU between them; the inner one is four times as wide."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.gelu = nn.GELU()
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.dropout(self.c_proj(self.gelu(self.c_fc(x))))
        return out


class TransformerBlock(nn.Module):
    """Attention and MLP, each with layer norm before and a residual connection around it."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd, config.bias)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = LayerNorm(config.n_embd, config.bias)
        self.mlp = MLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        out: Tensor = x + self.mlp(self.ln_2(x))
        return out


class GPT(nn.Module):
    """Map tokens [B, T] to logits [B, T, vocabulary]."""

    def __init__(self, config: Config, vocabulary: int) -> None:
        super().__init__()
        self.wte = nn.Embedding(vocabulary, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.drop = nn.Dropout(config.dropout)
        self.h = nn.ModuleList(TransformerBlock(config) for _ in range(config.n_layer))
        self.ln_f = LayerNorm(config.n_embd, config.bias)
        self.lm_head = nn.Linear(config.n_embd, vocabulary, bias=False)
        self.wte.weight = self.lm_head.weight
        self.apply(initialise)
        for name, parameter in self.named_parameters():
            if name.endswith("c_proj.weight"):  # each layer adds two of them to the residual stream
                nn.init.normal_(parameter, mean=0.0, std=0.02 / math.sqrt(2 * config.n_layer))

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(0, tokens.size(1), dtype=torch.long, device=tokens.device)  # [T]
        x = self.drop(self.wte(tokens) + self.wpe(positions))  # [B, T, C]
        for block in self.h:
            x = block(x)
        logits: Tensor = self.lm_head(self.ln_f(x))
        return logits


def initialise(module: nn.Module) -> None:
    """Initialise weights from a normal distribution with standard deviation 0.02, and biases with zero."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, mean=0.0, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
