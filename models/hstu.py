"""Sequential recommender with pointwise attention over jagged sequences (HSTU), on generated users or a Criteo file.

A user is a sequence of items with times. Sequences have different lengths and are not padded in the data: all users'
events are concatenated, with offsets. Each layer projects events to four vectors at once. Attention uses SiLU in
place of softmax: SiLU(scores), with biases for relative position and time, divided by the user's length. A gate
multiplies its result. A sampled softmax separates each event's next item from random negatives. Architecture:
arXiv:2402.17152.

In a Criteo file each line is a user. Its events are the line's categories in column order; missing ones, or 0, shorten
the sequence. An event's item combines column and value, and its time is the column. Label and integers are not used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.criteo import CATEGORIES, OPTIMIZERS, draw, make_optimizer, parsed_lines, zipf
from models.training import Batch, Training, choose, require_positive

LONGEST_GAP = 86_400  # seconds between two generated events of a user
Sequence = tuple[Tensor, Tensor]  # items and times of a user, int64, each [events]


@dataclass(frozen=True)
class Config:
    """Settings.

    Attributes:
        rows: Rows in the item table.
        dim: Width of an event.
        layers: Attention layers.
        heads: Attention heads.
        max_length: How many of the latest events are used for each user.
        time_buckets: Buckets for the relative-time bias, each twice as wide as the previous one.
        negatives: Random items that each event's next item is compared with.
        temperature: Divisor for the cosine similarities.
        sparse: True if the table's gradient is a sparse tensor.
        batch: Users in a step.
        optimizer: One of OPTIMIZERS.
        lr: Learning rate.
        data: A file in the format of the Criteo Kaggle data set; empty for generated users.
        seed: Random seed.
    """

    rows: int = 10_000
    dim: int = 32
    layers: int = 2
    heads: int = 2
    max_length: int = CATEGORIES - 1
    time_buckets: int = 24
    negatives: int = 128
    temperature: float = 0.05
    sparse: bool = True
    batch: int = 128
    optimizer: str = "sgd"
    lr: float = 0.01
    data: str = ""
    seed: int = 123

    def __post_init__(self) -> None:
        require_positive(self, "rows", "dim", "layers", "heads", "max_length", "negatives", "temperature")
        require_positive(self, "batch", "lr")
        choose(self.optimizer, OPTIMIZERS, "optimizer")
        if self.dim % self.heads:
            raise ValueError(f"dim {self.dim} is not a multiple of heads {self.heads}")
        if not 1 < self.time_buckets <= 64:
            raise ValueError(f"time_buckets {self.time_buckets} is not from 2 to 64")


def build(config: Config, device: str = "cpu") -> Training:
    """Build the model, its optimizer and its data on `device`."""
    torch.manual_seed(config.seed)
    model = HSTU(config).to(device)
    samples = read_users(config) if config.data else generate_users(config)
    return Training(
        model=model,
        optimizer=make_optimizer(model, model.items, config.optimizer, config.lr),
        batches=(tuple(part.to(device) for part in batch) for batch in collate(samples, config)),
        forward=lambda batch: model(*batch),
        loss=lambda logits, _: F.cross_entropy(logits, logits.new_zeros(len(logits), dtype=torch.long)),
    )


def generate_users(config: Config) -> Iterator[list[Sequence]]:
    """Yield random users, a batch at a time.

    Lengths, and the seconds between events, are log-uniform. Item popularity follows Zipf's law, in a random order.
    """
    generator = torch.Generator().manual_seed(config.seed)
    popularity = zipf(config.rows)
    rows = torch.randperm(config.rows, generator=generator)
    while True:
        lengths = _log_uniform(2, config.max_length + 2, config.batch, generator).tolist()
        items = rows[draw(popularity, (sum(lengths),), generator)]
        times = _log_uniform(1, LONGEST_GAP, sum(lengths), generator).cumsum(0)  # only differences within a user matter
        yield list(zip(torch.split(items, lengths), torch.split(times, lengths), strict=True))


def _log_uniform(low: int, high: int, size: int, generator: torch.Generator) -> Tensor:
    draws = torch.rand(size, generator=generator, dtype=torch.float64)
    return (low * (draws * math.log(high / low)).exp()).long().clamp_(max=high - 1)


def read_users(config: Config) -> Iterator[list[Sequence]]:
    """Yield one user for each line in order, repeatedly, a batch at a time.

    Raise ValueError that names the line if one is malformed.
    """
    for parsed in parsed_lines(config.data, config.batch):
        users = []
        for _, _, categories in parsed:
            columns = [i for i, category in enumerate(categories) if category]
            items = [(categories[i] * CATEGORIES + i) % config.rows for i in columns]
            users.append((torch.tensor(items, dtype=torch.long), torch.tensor(columns, dtype=torch.long)))
        if max(len(items) for items, _ in users) < 2:
            raise ValueError(f"{config.data}: none of {config.batch} lines has two categories; no item follows another")
        yield users


def collate(samples: Iterator[list[Sequence]], config: Config) -> Iterator[Batch]:
    """Yield batches of all events that have a successor.

    A batch holds offsets [B + 1]; items, times and next items, each [events]; and random items [negatives]; all int64.
    A user with fewer than two events contributes none.
    """
    generator = torch.Generator().manual_seed(config.seed)
    for users in samples:
        latest = [(items[-config.max_length - 1 :], times[-config.max_length - 1 :]) for items, times in users]
        lengths = torch.tensor([0, *(max(len(items) - 1, 0) for items, _ in latest)])
        yield (
            lengths.cumsum(0),
            torch.cat([items[:-1] for items, _ in latest]),
            torch.cat([times[:-1] for _, times in latest]),
            torch.cat([items[1:] for items, _ in latest]),
            torch.randint(config.rows, (config.negatives,), generator=generator),
        )


@dataclass(frozen=True)
class Places:
    """Positions of jagged events in a padded tensor.

    Attributes:
        user: User for each event, int64 [events].
        position: Position within the user's sequence, int64 [events].
        users: User count, B.
        length: Size of the padded dimension.
    """

    user: Tensor
    position: Tensor
    users: int
    length: int

    @classmethod
    def of(cls, offsets: Tensor, events: int, length: int) -> Places:
        """Compute the places from offsets.

        Args:
            offsets: [B + 1]; the last one equals `events`.
            events: Event count.
            length: Padded length, at least the longest user's.
        """
        event = torch.arange(events, device=offsets.device)
        user = torch.bucketize(event, offsets[1:], right=True)
        return cls(user, event - offsets[user], len(offsets) - 1, length)

    def pad(self, values: Tensor) -> Tensor:
        """Convert [events, ...] to [B, length, ...], with zeros after the last event of each user."""
        padded = values.new_zeros(self.users, self.length, *values.shape[1:])
        return padded.index_put((self.user, self.position), values)

    def unpad(self, padded: Tensor) -> Tensor:
        """Convert [B, length, ...] to [events, ...]."""
        return padded[self.user, self.position]


class HSTU(nn.Module):
    """Map jagged item sequences to logits [events, 1 + negatives], with the next item first."""

    boundaries: Tensor  # [time_buckets - 1], int64: first second of each bucket except the first
    seen: Tensor  # [T, T], float32: 1 if event j is not after event i, else 0

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.max_length, self.temperature = config.max_length, config.temperature
        self.items = nn.Embedding(config.rows, config.dim, sparse=config.sparse)
        nn.init.normal_(self.items.weight, std=0.02)
        self.layers = nn.ModuleList(PointwiseAttention(config) for _ in range(config.layers))
        self.register_buffer("boundaries", 2 ** torch.arange(config.time_buckets - 1), persistent=False)
        self.register_buffer("seen", torch.ones(config.max_length, config.max_length).tril(), persistent=False)

    def forward(self, offsets: Tensor, items: Tensor, times: Tensor, following: Tensor, negatives: Tensor) -> Tensor:
        """Return logits [events, 1 + negatives].

        Args:
            offsets: [B + 1], int64.
            items: [events], int64.
            times: [events], int64.
            following: The next item of each event, [events], int64.
            negatives: Random items, [negatives], int64.
        """
        events = len(items)
        rows = self.items(torch.cat([items, following, negatives]))  # a single lookup gives the table a single gradient
        x, candidates = rows[:events], F.normalize(rows[events:], dim=1)
        places = Places.of(offsets, events, self.max_length)
        elapsed, weights = self.relate(places.pad(times), offsets)
        for layer in self.layers:
            x = layer(x, places, elapsed, weights)
        x = F.normalize(x, dim=1)
        right = (x * candidates[:events]).sum(dim=1, keepdim=True)
        wrong = torch.mm(x, candidates[events:].t())
        # The sampled item happens to be the next one, so it is no negative.
        wrong = wrong.masked_fill(following.unsqueeze(1) == negatives, -math.inf)
        return torch.cat([right, wrong], dim=1) / self.temperature

    def relate(self, times: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """Return relations between events i and j of a user that all layers share, from times [B, T].

        Returns:
            tuple: The bucket of the time from j to i, int64 [B, T, T]; and the attention factor, [B, 1, T, T]: 1 /
                length if
            j is not after i, else 0.
        """
        elapsed = torch.bucketize((times.unsqueeze(2) - times.unsqueeze(1)).clamp(min=0), self.boundaries, right=True)
        lengths = (offsets[1:] - offsets[:-1]).clamp(min=1).view(-1, 1, 1, 1)
        return elapsed, self.seen / lengths


class PointwiseAttention(nn.Module):
    """One layer: [events, dim] to [events, dim]."""

    distance: Tensor  # [T, T], int64: number of events from j to i, 0 if i is before j

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm = nn.LayerNorm(config.dim)
        self.project = nn.Linear(config.dim, 4 * config.dim)
        self.by_distance = nn.Parameter(torch.zeros(config.max_length))
        self.by_time = nn.Parameter(torch.zeros(config.time_buckets))
        self.attended_norm = nn.LayerNorm(config.dim)
        self.output = nn.Linear(config.dim, config.dim)
        for linear in (self.project, self.output):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        position = torch.arange(config.max_length)
        distance = (position.unsqueeze(1) - position).clamp(min=0)
        self.register_buffer("distance", distance, persistent=False)

    def forward(self, x: Tensor, places: Places, elapsed: Tensor, weights: Tensor) -> Tensor:
        """Return [events, dim]. `elapsed` is [B, T, T], and `weights` is [B, 1, T, T]; see HSTU.relate."""
        width = x.size(1)
        gate, rest = torch.split(F.silu(self.project(self.norm(x))), [width, 3 * width], dim=1)
        bias = look_up(self.by_distance, self.distance) + look_up(self.by_time, elapsed)  # [B, T, T]
        attended = places.unpad(self.attend(places.pad(rest), bias, weights))
        updated: Tensor = x + self.output(self.attended_norm(attended) * gate)
        return updated

    def attend(self, padded: Tensor, bias: Tensor, weights: Tensor) -> Tensor:
        """Return [B, T, dim] from padded values, queries and keys, [B, T, 3 * dim].

        Padding has values of 0, so it has no influence.
        """
        B, T, _ = padded.shape
        split = padded.view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # [3, B, heads, T, dim / heads]
        value, query, key = split.reshape(3, B * self.heads, T, -1)
        scores = torch.bmm(query, key.transpose(1, 2)).view(B, self.heads, T, T) + bias.unsqueeze(1)
        attention = (F.silu(scores) * weights).view(B * self.heads, T, T)
        attended = torch.bmm(attention, value).view(B, self.heads, T, -1)
        return attended.transpose(1, 2).reshape(B, T, -1)


def look_up(biases: Tensor, index: Tensor) -> Tensor:
    """Return biases[index] for biases [n].

    On a CPU `index_select` adds the gradients from many positions to one bias in a fixed order.
    """
    return biases.index_select(0, index.flatten()).view_as(index)
