"""Sequential recommender with pointwise attention over jagged sequences (HSTU), on generated users or a Criteo file.

A user is a sequence of items with times, as long as it is; nothing is padded in the data, and all users' events lie one
behind the other, with offsets. Each layer turns events into four vectors at once; SiLU of the scores, with biases for
relative position and time, takes the place of the softmax in attention, divided by the user's length, and its result
is gated. What follows each event is told from random other items by a sampled softmax. Architecture: arXiv:2402.17152.

Of a Criteo file a line is a user, whose events are the categories that the line has, in the order of the columns; those
missing, or 0, leave the sequence shorter. An event's item is its column and value, its time is its column. Label and
integers are not used.
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
    """Settings. rows: of the table of items. dim: width of an event. max_length: latest events of a user that are used.
    time_buckets: of the bias for relative time, each twice as wide as the one before. negatives: items that every
    event's next one is told from. temperature: of the cosines. sparse: whether the table's gradient is a sparse tensor.

    data: a file in the format of the Criteo Kaggle data set; empty for generated users.
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
    """The model, its optimizer and its data on `device`."""
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
    """Random users, a batch at a time. Lengths and the seconds between events are uniform in their logarithm.

    Popularity of items follows Zipf's law, in a random order.
    """
    generator = torch.Generator().manual_seed(config.seed)
    popularity = zipf(config.rows)
    rows = torch.randperm(config.rows, generator=generator)
    while True:
        lengths = _log_uniform(2, config.max_length + 2, config.batch, generator).tolist()
        items = rows[draw(popularity, (sum(lengths),), generator)]
        times = _log_uniform(1, LONGEST_GAP, sum(lengths), generator).cumsum(0)  # within a user only differences count
        yield list(zip(torch.split(items, lengths), torch.split(times, lengths), strict=True))


def _log_uniform(low: int, high: int, size: int, generator: torch.Generator) -> Tensor:
    draws = torch.rand(size, generator=generator, dtype=torch.float64)
    return (low * (draws * math.log(high / low)).exp()).long().clamp_(max=high - 1)


def read_users(config: Config) -> Iterator[list[Sequence]]:
    """A user for each of the file's lines in order, over and over, a batch at a time. Raises ValueError by line."""
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
    """Batches of all events that another follows: offsets [B + 1]; items, times and the next items, each [events]; and
    random items, [negatives]; int64. A user of fewer than two events has none here.
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
    """Where the events of jagged sequences lie in a padded tensor. user, position: of each event, int64 [events]."""

    user: Tensor
    position: Tensor
    users: int
    length: int

    @classmethod
    def of(cls, offsets: Tensor, events: int, length: int) -> Places:
        """offsets: [B + 1], the last of them `events`. length: of the padded tensor, at least the longest user's."""
        event = torch.arange(events, device=offsets.device)
        user = torch.bucketize(event, offsets[1:], right=True)
        return cls(user, event - offsets[user], len(offsets) - 1, length)

    def pad(self, values: Tensor) -> Tensor:
        """[events, ...] to [B, length, ...], with zeros behind the last event of each user."""
        padded = values.new_zeros(self.users, self.length, *values.shape[1:])
        return padded.index_put((self.user, self.position), values)

    def unpad(self, padded: Tensor) -> Tensor:
        """[B, length, ...] to [events, ...]."""
        return padded[self.user, self.position]


class HSTU(nn.Module):
    """Jagged sequences of items to logits [events, 1 + negatives], the next item's first."""

    boundaries: Tensor  # [time_buckets - 1], int64: the first second of each bucket but the first
    seen: Tensor  # [T, T], float32: 1 where event j is not behind event i, else 0

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.max_length, self.temperature = config.max_length, config.temperature
        self.items = nn.Embedding(config.rows, config.dim, sparse=config.sparse)
        nn.init.normal_(self.items.weight, std=0.02)
        self.layers = nn.ModuleList(PointwiseAttention(config) for _ in range(config.layers))
        self.register_buffer("boundaries", 2 ** torch.arange(config.time_buckets - 1), persistent=False)
        self.register_buffer("seen", torch.ones(config.max_length, config.max_length).tril(), persistent=False)

    def forward(self, offsets: Tensor, items: Tensor, times: Tensor, following: Tensor, negatives: Tensor) -> Tensor:
        """offsets: [B + 1]; items, times, following: [events]; negatives: [negatives]; all int64."""
        events = len(items)
        rows = self.items(torch.cat([items, following, negatives]))  # one lookup, so one gradient of the table
        x, candidates = rows[:events], F.normalize(rows[events:], dim=1)
        places = Places.of(offsets, events, self.max_length)
        elapsed, weights = self.relate(places.pad(times), offsets)
        for layer in self.layers:
            x = layer(x, places, elapsed, weights)
        x = F.normalize(x, dim=1)
        right = (x * candidates[:events]).sum(dim=1, keepdim=True)
        wrong = torch.mm(x, candidates[events:].t())
        wrong = wrong.masked_fill(following.unsqueeze(1) == negatives, -math.inf)  # drawn by chance, and no negative
        return torch.cat([right, wrong], dim=1) / self.temperature

    def relate(self, times: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """What holds for events i and j of a user in every layer, from times [B, T].

        The bucket of the time from j to i, int64 [B, T, T]; and the factor of their attention, [B, 1, T, T]: 1 by the
        user's length where j is not behind i, else 0.
        """
        elapsed = torch.bucketize((times.unsqueeze(2) - times.unsqueeze(1)).clamp(min=0), self.boundaries, right=True)
        lengths = (offsets[1:] - offsets[:-1]).clamp(min=1).view(-1, 1, 1, 1)
        return elapsed, self.seen / lengths


class PointwiseAttention(nn.Module):
    """A layer: [events, dim] to the same."""

    distance: Tensor  # [T, T], int64: how many events i is behind j, 0 where it is before

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
        """elapsed: [B, T, T]; weights: [B, 1, T, T]; see HSTU.relate."""
        width = x.size(1)
        gate, rest = torch.split(F.silu(self.project(self.norm(x))), [width, 3 * width], dim=1)
        bias = look_up(self.by_distance, self.distance) + look_up(self.by_time, elapsed)  # [B, T, T]
        attended = places.unpad(self.attend(places.pad(rest), bias, weights))
        updated: Tensor = x + self.output(self.attended_norm(attended) * gate)
        return updated

    def attend(self, padded: Tensor, bias: Tensor, weights: Tensor) -> Tensor:
        """padded: values, queries and keys, [B, T, 3 * dim]. What is padded has values of 0 and so no influence."""
        B, T, _ = padded.shape
        split = padded.view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # [3, B, heads, T, dim / heads]
        value, query, key = split.reshape(3, B * self.heads, T, -1)
        scores = torch.bmm(query, key.transpose(1, 2)).view(B, self.heads, T, T) + bias.unsqueeze(1)
        attention = (F.silu(scores) * weights).view(B * self.heads, T, T)
        attended = torch.bmm(attention, value).view(B, self.heads, T, -1)
        return attended.transpose(1, 2).reshape(B, T, -1)


def look_up(biases: Tensor, index: Tensor) -> Tensor:
    """biases[index], of biases [n]; on a CPU the gradients of the many places of a bias are added in their order."""
    return biases.index_select(0, index.flatten()).view_as(index)
