"""Shared parts of click models: Criteo data or similar generated data, embedding tables, their optimizers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice

import torch
from torch import Tensor, nn

from models.rowwise_adagrad import RowwiseAdagrad
from models.training import Batch, Training, choose, require_positive

OPTIMIZERS = ("sgd", "adagrad", "rowwise-adagrad")
DENSE = 13  # integer features in a Criteo line
CATEGORIES = 26  # hexadecimal features in a Criteo line
COLUMNS = 1 + DENSE + CATEGORIES  # label first
ZIPF = 1.05  # exponent for the popularity of categories


@dataclass(frozen=True)
class Settings:
    """Settings that all click models share.

    Attributes:
        tables: Embedding tables.
        rows: Rows in each table.
        dim: Width of an embedding.
        lookups: Categories for each table and sample.
        sparse: True if table gradients are sparse tensors that contain only the looked-up rows.
        batch: Samples in a step.
        optimizer: One of OPTIMIZERS.
        lr: Learning rate.
        data: A file in the format of the Criteo Kaggle data set (tab-separated: label, 13 integers, 26 hexadecimal
            numbers; features may be missing); empty for generated data. A file has 26 tables and one lookup each.
        seed: Random seed.
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


def click_training(
    model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], config: Settings, device: str
) -> Training:
    """Return the Training for a click model on `device`.

    Args:
        model: Takes dense, offsets and indices in the shapes of `generate`, and has a submodule `tables`.
        loss: Function of the model's output and the labels, each [B, 1].
        config: Settings.
        device: Device of the model.

    Returns:
        Training: Its batches raise ValueError for a malformed line in the file.
    """
    samples = read_criteo(config) if config.data else generate(config)
    return Training(
        model=model,
        optimizer=make_optimizer(model, model.get_submodule("tables"), config.optimizer, config.lr),
        batches=(tuple(part.to(device) for part in batch) for batch in samples),
        forward=lambda batch: model(*batch[:3]),
        loss=lambda output, batch: loss(output, batch[3]),
    )


def make_optimizer(model: nn.Module, tables: nn.Module, name: str, lr: float) -> torch.optim.Optimizer:
    """Return SGD or Adagrad with a loop over the parameters, or Adagrad with one accumulator for each table row.

    `tables` is the part of the model whose parameters are tables.
    """
    # Adagrad builds sparse tensors from gradients that are known to be valid. PyTorch warns unless checks are disabled.
    torch.sparse.check_sparse_tensor_invariants.disable()  # type: ignore[no-untyped-call]
    if name == "sgd":
        return torch.optim.SGD(model.parameters(), lr=lr, foreach=False)
    if name == "adagrad":
        return torch.optim.Adagrad(model.parameters(), lr=lr, foreach=False)
    rowwise = list(tables.parameters())
    dense = [p for p in model.parameters() if all(p is not table for table in rowwise)]
    return RowwiseAdagrad([{"params": dense}, {"params": rowwise, "rowwise": True}], lr=lr)


def generate(config: Settings) -> Iterator[Batch]:
    """Yield random batches: dense, offsets, indices, label.

    Shapes and dtypes: dense [B, 13] float32; offsets [tables, B] and indices [tables, B * lookups] int64; label [B, 1]
    float32. The popularity of a table's rows follows Zipf's law, in a separate random order for each table.
    """
    generator = torch.Generator().manual_seed(config.seed)
    popularity = zipf(config.rows)
    rows = torch.stack([torch.randperm(config.rows, generator=generator) for _ in range(config.tables)])
    offsets = torch.arange(0, config.batch * config.lookups, config.lookups).repeat(config.tables, 1)
    while True:
        dense = torch.rand(config.batch, DENSE, generator=generator)
        ranks = draw(popularity, (config.tables, config.batch * config.lookups), generator)
        label = torch.rand(config.batch, 1, generator=generator).round()
        yield dense, offsets, rows.gather(1, ranks), label


def zipf(rows: int) -> Tensor:
    """Return the cumulative popularity of ranks by Zipf's law, unnormalised: [rows], float64."""
    return torch.arange(1, rows + 1, dtype=torch.float64).pow(-ZIPF).cumsum(0)


def draw(popularity: Tensor, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Draw random int64 ranks, distributed according to the cumulative `popularity`."""
    draws = torch.rand(shape, generator=generator, dtype=torch.float64)
    return torch.searchsorted(popularity, draws * popularity[-1]).clamp_(max=len(popularity) - 1)


def read_criteo(config: Settings) -> Iterator[Batch]:
    """Yield batches from the file's lines in order, repeatedly, in the shapes of `generate`.

    Raise ValueError that names the line if one is malformed.
    """
    offsets = torch.arange(config.batch).repeat(CATEGORIES, 1)
    for parsed in parsed_lines(config.data, config.batch):
        label, dense, categories = (torch.tensor(part) for part in zip(*parsed, strict=True))
        indices = categories.remainder(config.rows).t().contiguous()
        yield dense.clamp(min=0).add(1).log(), offsets, indices, label.unsqueeze(1)


def parsed_lines(path: str, batch: int) -> Iterator[list[tuple[float, list[float], list[int]]]]:
    """Yield the file's lines in order, repeatedly, `batch` at a time, parsed by `parse_criteo`.

    Raise ValueError as `parse_criteo` does.
    """
    lines = _lines(path)
    while True:
        yield [parse_criteo(line, where) for where, line in islice(lines, batch)]


def _lines(path: str) -> Iterator[tuple[str, str]]:
    for rounds in count():
        number = 0
        try:
            with open(path, encoding="ascii") as file:
                for number, line in enumerate(file, start=1):
                    yield f"{path}: line {number}", line
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: cannot be read as Criteo data ({error})") from error
        if not number:
            raise ValueError(f"{path}: is empty" + " now" * bool(rounds))


def parse_criteo(line: str, where: str) -> tuple[float, list[float], list[int]]:
    """Parse label, 13 decimal numbers and 26 hexadecimal numbers from one line; a missing feature is 0.

    Raise ValueError that names the column.
    """
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


def table(rows: int, dim: int, sparse: bool = True) -> nn.EmbeddingBag:
    """Return an embedding table with sum pooling, initialised uniformly in +-sqrt(1 / rows).

    `sparse` selects sparse gradients.
    """
    bag = nn.EmbeddingBag(rows, dim, mode="sum", sparse=sparse)
    nn.init.uniform_(bag.weight, -math.sqrt(1 / rows), math.sqrt(1 / rows))
    return bag


def mlp(widths: tuple[int, ...], last: nn.Module) -> nn.Sequential:
    """Return linear layers with ReLU between them and `last` at the end.

    Weights have variance 2 / (inputs + outputs), biases 1 / outputs, as in DLRM's published reference code.
    """
    layers: list[nn.Module] = []
    for inputs, outputs in zip(widths, widths[1:], strict=False):
        linear = nn.Linear(inputs, outputs)
        nn.init.normal_(linear.weight, std=math.sqrt(2 / (inputs + outputs)))
        nn.init.normal_(linear.bias, std=math.sqrt(1 / outputs))
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1], last)
