"""Recommendation model with sparse embedding tables (DLRM), on generated clicks or a Criteo file.

Dense features pass through the bottom MLP, categories through embedding tables; all pairs of the resulting vectors are
multiplied, and the top MLP turns the products into the probability of a click. Architecture: arXiv:1906.00091.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.rowwise_adagrad import RowwiseAdagrad
from models.training import Batch, Training, choose, require_positive

OPTIMIZERS = ("sgd", "adagrad", "rowwise-adagrad")
DENSE = 13  # integer features of a Criteo line
CATEGORIES = 26  # hexadecimal features of a Criteo line
COLUMNS = 1 + DENSE + CATEGORIES  # the label first
BOTTOM = (DENSE, 512, 256, 64)  # and the width of an embedding
TOP = (512, 256, 1)
ZIPF = 1.05  # exponent of the popularity of categories


@dataclass(frozen=True)
class Config:
    """Settings. rows: of each table. dim: width of an embedding. lookups: categories a table and sample.
    sparse: whether the gradients of tables are sparse tensors, of the rows that were looked up.

    data: a file in the format of the Criteo Kaggle data set (tab-separated: label, 13 integers, 26 hexadecimal numbers;
    any of them may be missing); empty for generated data. A file has 26 tables and one lookup each.
    """

    tables: int = CATEGORIES
    rows: int = 10_000
    dim: int = 16
    lookups: int = 10
    sparse: bool = True
    batch: int = 128
    optimizer: str = "sgd"
    lr: float = 0.01
    data: str = ""
    seed: int = 123

    def __post_init__(self) -> None:
        require_positive(self, "tables", "rows", "dim", "lookups", "batch", "lr")
        choose(self.optimizer, OPTIMIZERS, "optimizer")
        if self.data and self.tables != CATEGORIES:
            raise ValueError(f"tables {self.tables} does not fit data {self.data}, which has {CATEGORIES} categories")


def build(config: Config, device: str = "cpu") -> Training:
    """The model, its optimizer and its data on `device`. Raises ValueError if the data file cannot be opened."""
    torch.manual_seed(config.seed)
    model = DLRM(config).to(device)
    samples = read_criteo(config) if config.data else generate(config)
    # Adagrad builds sparse tensors of gradients that are known to be valid; PyTorch warns unless told not to check.
    torch.sparse.check_sparse_tensor_invariants.disable()  # type: ignore[no-untyped-call]
    return Training(
        model=model,
        optimizer=make_optimizer(model, config),
        batches=(tuple(part.to(device) for part in batch) for batch in samples),
        forward=lambda batch: model(*batch[:3]),
        loss=lambda probability, batch: F.binary_cross_entropy(probability, batch[3]),
    )


def make_optimizer(model: DLRM, config: Config) -> torch.optim.Optimizer:
    """SGD or Adagrad by a loop over the parameters, or Adagrad that keeps one number a row of a table."""
    if config.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), lr=config.lr, foreach=False)
    if config.optimizer == "adagrad":
        return torch.optim.Adagrad(model.parameters(), lr=config.lr, foreach=False)
    dense = [*model.bottom.parameters(), *model.top.parameters()]
    groups = [{"params": dense}, {"params": list(model.tables.parameters()), "rowwise": True}]
    return RowwiseAdagrad(groups, lr=config.lr)


def generate(config: Config) -> Iterator[Batch]:
    """Random batches: dense [B, 13] float32; offsets [tables, B] and indices [tables, B * lookups] int64; label [B, 1].

    Popularity of a table's rows follows Zipf's law, in an order of its own for each table.
    """
    generator = torch.Generator().manual_seed(config.seed)
    popularity = torch.arange(1, config.rows + 1, dtype=torch.float64).pow(-ZIPF).cumsum(0)
    rows = torch.stack([torch.randperm(config.rows, generator=generator) for _ in range(config.tables)])
    offsets = torch.arange(0, config.batch * config.lookups, config.lookups).repeat(config.tables, 1)
    while True:
        dense = torch.rand(config.batch, DENSE, generator=generator)
        draws = torch.rand(config.tables, config.batch * config.lookups, generator=generator, dtype=torch.float64)
        ranks = torch.searchsorted(popularity, draws * popularity[-1]).clamp_(max=config.rows - 1)
        label = torch.rand(config.batch, 1, generator=generator).round()
        yield dense, offsets, rows.gather(1, ranks), label


def read_criteo(config: Config) -> Iterator[Batch]:
    """Batches of the file's lines in order, over and over, in the shapes of `generate`. Raises ValueError by line."""
    lines = _lines(config.data)
    offsets = torch.arange(config.batch).repeat(CATEGORIES, 1)
    while True:
        parsed = [parse_criteo(line, where) for where, line in islice(lines, config.batch)]
        label, dense, categories = (torch.tensor(part) for part in zip(*parsed, strict=True))
        indices = categories.remainder(config.rows).t().contiguous()
        yield dense.clamp(min=0).add(1).log(), offsets, indices, label.unsqueeze(1)


def _lines(path: str) -> Iterator[tuple[str, str]]:
    for rounds in count():
        found = 0
        try:
            with open(path, encoding="ascii") as file:
                for found, line in enumerate(file, start=1):
                    yield f"{path}: line {found}", line
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: cannot be read as Criteo data ({error})") from error
        if not found:
            raise ValueError(f"{path}: is empty" + " now" * bool(rounds))


def parse_criteo(line: str, where: str) -> tuple[float, list[float], list[int]]:
    """Label, 13 numbers and 26 numbers of one line; what is missing is 0. Raises ValueError that names the column."""
    columns = line.rstrip("\r\n").split("\t")
    if len(columns) != COLUMNS:
        raise ValueError(f"{where}: has {len(columns)} columns, Criteo data has {COLUMNS}")
    if columns[0] not in ("0", "1"):
        raise ValueError(f"{where}, column 1: {columns[0][:40]!r} is not a label; expected 0 or 1")
    dense = [_number(columns[i], 10, f"{where}, column {i + 1}") for i in range(1, 1 + DENSE)]
    categories = [_number(columns[i], 16, f"{where}, column {i + 1}") for i in range(1 + DENSE, COLUMNS)]
    return float(columns[0]), [float(n) for n in dense], categories


def _number(text: str, base: int, where: str) -> int:
    try:
        number = int(text, base) if text else 0
    except ValueError:
        number = 1 << 63
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"{where}: {text[:40]!r} is not a {'hexadecimal' if base == 16 else 'decimal'} 64-bit integer")
    return number


class DLRM(nn.Module):
    """Dense features [B, 13] and categories to the probability of a click, [B, 1]."""

    pairs: Tensor  # [2, vectors * (vectors - 1) / 2], row and column of each product that is used

    def __init__(self, config: Config) -> None:
        super().__init__()
        vectors = config.tables + 1
        self.bottom = mlp((*BOTTOM, config.dim), nn.ReLU())
        self.tables = nn.ModuleList(table(config.rows, config.dim, config.sparse) for _ in range(config.tables))
        self.top = mlp((config.dim + vectors * (vectors - 1) // 2, *TOP), nn.Sigmoid())
        self.register_buffer("pairs", torch.tril_indices(vectors, vectors, offset=-1), persistent=False)

    def forward(self, dense: Tensor, offsets: Tensor, indices: Tensor) -> Tensor:
        """offsets: [tables, B]; indices: [tables, B * lookups]."""
        x = self.bottom(dense)  # [B, dim]
        pooled = [table(indices[i], offsets[i]) for i, table in enumerate(self.tables)]
        probability: Tensor = self.top(self.interact(x, pooled))
        return probability

    def interact(self, x: Tensor, pooled: list[Tensor]) -> Tensor:
        """x and the dot products of all pairs of vectors: [B, dim + pairs]."""
        vectors = torch.cat([x, *pooled], dim=1).view(x.size(0), -1, x.size(1))  # [B, vectors, dim]
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        below = products[:, self.pairs[0], self.pairs[1]]
        return torch.cat([x, below], dim=1)


def table(rows: int, dim: int, sparse: bool = True) -> nn.EmbeddingBag:
    """A table of sums, uniform in +-sqrt(1 / rows). sparse: whether its gradient is."""
    bag = nn.EmbeddingBag(rows, dim, mode="sum", sparse=sparse)
    nn.init.uniform_(bag.weight, -math.sqrt(1 / rows), math.sqrt(1 / rows))
    return bag


def mlp(widths: tuple[int, ...], last: nn.Module) -> nn.Sequential:
    """Linear layers with ReLU between and `last` behind.

    Weights have the variance 2 / (inputs + outputs), biases 1 / outputs, as in the published reference.
    """
    layers: list[nn.Module] = []
    for inputs, outputs in zip(widths, widths[1:], strict=False):
        linear = nn.Linear(inputs, outputs)
        nn.init.normal_(linear.weight, std=math.sqrt(2 / (inputs + outputs)))
        nn.init.normal_(linear.bias, std=math.sqrt(1 / outputs))
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1], last)
