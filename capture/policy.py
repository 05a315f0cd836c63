"""Policy for call contents: store everything, only the touched rows, statistics to draw from, or less.

Integers and booleans stay full: they are indices, offsets and masks, so the meaning of the call depends on their
values. A table keeps the rows that are looked up. Over budget, other contents are drawn from their statistics at
replay. Values that a backward operator takes from its forward operator are reproduced by running the latter again.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from blake3 import blake3

from capture import device
from capture.budget import BlobBudget
from capture.limits import Limits
from capture.pipeline import Contents, Pending, Pipeline, Token, statistics
from capture.producers import DERIVED
from capture.staging import SMALL
from traces.contents import MAX_SYNTHESISED
from traces.span import Span
from traces.synthesis import pseudonyms
from traces.values import Packed, TensorRef

TINY = 4096  # bytes up to which contents are stored, even if larger ones are over budget
TABLE = 16 << 20  # bytes from which only the touched rows of a table are stored
SPARSE = 4  # a span this many times larger than its tensor is stored without the gaps
LARGE = (4 << 10, 4 << 20)  # minimum and maximum, in bytes, of the size from which a blob can be given up again

# By base name: the table argument, and the argument that holds the touched rows.
_TABLES = {
    "embedding": ("weight", "indices"),
    "_embedding_bag": ("weight", "indices"),
    "_embedding_bag_forward_only": ("weight", "indices"),
    "index_select": ("self", "index"),
    "index": ("self", "indices"),
    "add_": ("self", "other"),  # `other` is a sparse gradient
    "sparse_mask": ("self", "mask"),
}


@dataclass
class Taken:
    """The contents stored for one call.

    Attributes:
        contents: Content spec of each group, pending its blob keys.
        fresh: Blobs that the call added.
        partial: Names of arguments that are not stored in full.
    """

    contents: list[Pending] = field(default_factory=list)
    fresh: list[Token] = field(default_factory=list)
    partial: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Part:
    """One group of a call.

    Attributes:
        index: Index of the group.
        name: First argument that uses it.
        span: Its live bytes.
        tensors: Its tensors.
        dtype: Their dtype; None if they differ.
        source: Content spec that reproduces it from another call, or None.
        small: True if the call's groups together stay below the limit for synthesised bytes, so a reader may synthesise
            this one.
    """

    index: int
    name: str
    span: Span
    tensors: list[TensorRef]
    dtype: torch.dtype | None
    source: dict[str, Any] | None
    small: bool

    @property
    def discrete(self) -> bool:
        return self.dtype is not None and not (self.dtype.is_floating_point or self.dtype.is_complex)

    @property
    def drawable(self) -> bool:
        return self.small and self.dtype is not None and not self.dtype.is_complex

    def elements(self) -> torch.Tensor:
        assert self.dtype is not None
        return self.span.raw().view(self.dtype)

    def only_tensor(self) -> torch.Tensor | None:
        """Return the live tensor if the group has only one, otherwise None."""
        if len(set(self.tensors)) != 1 or self.dtype is None:
            return None
        ref = self.tensors[0]
        empty = torch.empty(0, dtype=self.dtype, device=self.span.device)
        return empty.set_(self.span.storage, (self.span.lo + ref.offset) // self.dtype.itemsize, ref.shape, ref.stride)


class Policy:
    """Decides how to store contents, and passes them to the pipeline."""

    def __init__(self, limits: Limits, pipeline: Pipeline, budget: BlobBudget) -> None:
        self._limits = limits
        self._pipeline = pipeline
        self._budget = budget
        self._key = secrets.token_bytes(32)  # key of the pseudonyms; never stored

    def take(
        self,
        overload: str,
        arguments: dict[str, Any],
        packed: Packed,
        spans: list[Span | None],
        sources: dict[int, dict[str, Any]],
    ) -> Taken:
        """Store a call's contents as they are now.

        Args:
            overload: Full overload name.
            arguments: Arguments by schema name.
            packed: Packed arguments.
            spans: Live bytes of each group, None if they are not to be recorded.
            sources: Content specs, by storage, for contents that other calls produce.
        """
        taken = Taken([Pending(None if span is None else "") for span in spans])
        parts = _parts(packed, spans, sources)
        if self._limits.values != "full":
            for part in parts:
                self._put(taken, part, self._private(part, taken, overload))
            return taken
        tables = _touched_rows(overload, arguments)
        whole: list[_Part] = []
        for part in parts:
            if part.name in tables and part.span.nbytes >= min(TABLE, self._limits.max_blob):
                self._put(taken, part, self._rows(part, tables[part.name], overload, taken))
            elif part.span.nbytes > self._limits.max_blob and not part.discrete:
                self._put(taken, part, self._reduced(part, overload, "over --max-blob"))
            elif not self._compact(part, overload, taken):
                whole.append(part)
        if whole:
            contents = contents_of([part.span for part in whole])
            self._whole(list(zip(whole, contents, strict=True)), overload, tables, taken)
        self._agree(parts, overload, taken)
        return taken

    def _agree(self, parts: list[_Part], owner: str, taken: Taken) -> None:
        """Keep the outputs of one producer consistent: store all of them, or reproduce all of them."""
        produced = [part for part in parts if part.source is not None]
        if any(part.name in taken.partial for part in produced):
            for part in produced:
                self._put(taken, part, self._reduced(part, owner, "over --max-bytes"))

    def _put(self, taken: Taken, part: _Part, pending: Pending) -> None:
        taken.contents[part.index] = pending
        if isinstance(pending.spec, dict) and pending.spec["level"] != "full":
            taken.partial.add(part.name)

    def _whole(
        self, parts: list[tuple[_Part, Contents]], owner: str, tables: dict[str, torch.Tensor], taken: Taken
    ) -> None:
        for keep in (True, False):
            chosen = [p for p in parts if (p[0].discrete or p[0].span.nbytes <= TINY) is keep]
            if self._admit(owner, {contents.token: part.span.nbytes for part, contents in chosen}, taken, keep):
                fresh = {
                    contents.token: (contents, part.span) for part, contents in chosen if contents.token in taken.fresh
                }
                self._pipeline.put(list(fresh.values()))
                for part, contents in chosen:
                    lost = part.name in DERIVED or not part.drawable
                    fallback = part.source or ({"level": "meta"} if lost else None)
                    self._put(taken, part, Pending("", {"": contents.token}, part.dtype, fallback))
                continue
            for part, _ in chosen:
                rows = tables.get(part.name)
                spec = self._reduced(part, owner, "over --max-bytes")
                self._put(taken, part, spec if rows is None else self._rows(part, rows, owner, taken))

    def _admit(self, owner: str, wanted: dict[Token, int], taken: Taken, keep: bool) -> bool:
        new = {token: nbytes for token, nbytes in wanted.items() if token not in self._budget}
        if not new:
            return True
        given_up = self._budget.admit(owner, new, keep)
        if given_up is None:
            return False
        for token in given_up:
            self._pipeline.drop(token, given_up=True)
        taken.fresh += new
        return True

    def _bytes(self, owner: str, data: dict[str, bytes], taken: Taken, spec: dict[str, Any]) -> Pending | None:
        """Return a spec with blobs created for it, or None if that exceeds the budget."""
        tokens = {name: ("bytes", blake3(d).digest()) for name, d in data.items()}
        if not self._admit(owner, {tokens[n]: len(d) for n, d in data.items()}, taken, keep=True):
            return None
        for name, d in data.items():
            if tokens[name] in taken.fresh:
                self._pipeline.put_bytes(tokens[name], d)
        return Pending(spec, tokens)

    def _compact(self, part: _Part, owner: str, taken: Taken) -> bool:
        """Store a tensor without the gaps in its span, if it is mostly gaps. Return True if it was handled."""
        least = SPARSE * math.prod(part.tensors[0].shape) * (part.dtype.itemsize if part.dtype else 1)
        tensor = part.only_tensor() if part.small and part.span.nbytes > SMALL and least <= part.span.nbytes else None
        if tensor is None:
            return False
        spec = {"level": "full", "compact": True}
        pending = self._bytes(owner, {"blob": _to_bytes(tensor)}, taken, spec)
        self._put(taken, part, pending or self._reduced(part, owner, "over --max-bytes"))
        return True

    def _rows(self, part: _Part, index: torch.Tensor, owner: str, taken: Taken) -> Pending:
        table = part.only_tensor()
        over = "over --max-bytes"
        if table is None or not table.is_contiguous() or table.dim() < 2:
            return self._reduced(part, owner, over)
        rows = torch.unique(index.reshape(-1).to(torch.int64) % table.shape[0])  # negative indices count from the end
        drawn = self._drawn(part, owner)
        if drawn["level"] != "seeded":
            return Pending(drawn)
        spec = {**drawn, "level": "rows", "count": rows.numel(), "why": "touched rows of a table"}
        data = {"rows": _to_bytes(rows), "blob": _to_bytes(table[rows])}
        return self._bytes(owner, data, taken, spec) or self._reduced(part, owner, over)

    def _reduced(self, part: _Part, owner: str, why: str) -> Pending:
        """Return a spec without contents: reproduced by another call, drawn, or not at all."""
        if part.source is not None:
            return Pending({**part.source, "why": why})
        if part.name in DERIVED or part.discrete:
            return Pending({**_described(part), "why": why})
        return Pending({**self._drawn(part, owner), "why": why})

    def _drawn(self, part: _Part, owner: str, private: bool = False) -> dict[str, Any]:
        if not part.drawable:
            return {"level": "meta"}
        seed = int(blake3(f"{owner} {part.name} {part.index}".encode()).hexdigest()[:8], 16)
        return {"level": "seeded", "stats": statistics(part.elements(), private), "seed": seed}

    def _private(self, part: _Part, taken: Taken, owner: str) -> Pending:
        why = f"--values {self._limits.values}"
        if not part.drawable:
            return Pending({"level": "meta", "why": why})
        if self._limits.values == "stats" or (part.source is None and part.name in DERIVED):
            return Pending({**_described(part, private=True), "why": why})
        if part.source is not None:
            return Pending({**part.source, "why": why})
        drawn = self._drawn(part, owner, private=True)
        wide = part.dtype is not None and part.dtype.itemsize > 1
        if wide and part.discrete and not drawn["stats"].get("sorted"):
            return self._pseudonymised(part, owner, taken, why)
        return Pending({**drawn, "why": why})

    def _pseudonymised(self, part: _Part, owner: str, taken: Taken, why: str) -> Pending:
        values = pseudonyms(part.elements().to("cpu", torch.int64).numpy(), self._key)
        low = int(values.min())
        width = next(w for w in (1, 2, 4, 8) if int(values.max()) - low < 1 << 8 * w)
        data = (values - low).astype(np.dtype(f"<u{width}")).tobytes()
        spec = {"level": "seeded", "width": width, "low": low, "count": len(values), "why": why}
        pending = self._bytes(owner, {"ids": data}, taken, spec)
        return pending or Pending({**_described(part, private=True), "why": why})


def _described(part: _Part, private: bool = False) -> dict[str, Any]:
    """Return a spec with statistics alone, or level meta if the group has none."""
    if part.dtype is None or part.dtype.is_complex:
        return {"level": "meta"}
    return {"level": "stats", "stats": statistics(part.elements(), private)}


def contents_of(spans: list[Span]) -> list[Contents]:
    """Return the spans' contents, with equal tokens for equal contents."""
    remote = {i: span.raw() for i, span in enumerate(spans) if span.device.type == "cuda" and device.compiles()}
    tokens = dict(zip(remote, device.hashes(list(remote.values())), strict=True))
    return [Contents(tokens[i], raw=remote[i]) if i in remote else _hashed(span) for i, span in enumerate(spans)]


def _hashed(span: Span) -> Contents:
    host = span.host() if span.device.type == "cpu" else span.raw().cpu().numpy().data
    if span.nbytes > SMALL:
        return Contents(blake3(host, max_threads=blake3.AUTO).digest())
    copy = bytes(host)
    return Contents(blake3(copy).digest(), copy)


def _parts(packed: Packed, spans: list[Span | None], sources: dict[int, dict[str, Any]]) -> list[_Part]:
    names = _names(packed)
    small = sum(span.nbytes for span in spans if span is not None) <= MAX_SYNTHESISED
    parts = []
    for i, span in enumerate(spans):
        if span is None or not span.nbytes:
            continue
        tensors = [t for t in packed.tensors if t.group == i]
        dtypes = {t.dtype for t in tensors}
        dtype = getattr(torch, dtypes.pop()) if len(dtypes) == 1 else None
        if dtype is not None and (span.nbytes % dtype.itemsize or span.lo % dtype.itemsize):
            dtype = None
        source = sources.get(span.storage._cdata) if small and len(set(tensors)) == 1 else None
        parts.append(_Part(i, names[i], span, tensors, dtype, source, small))
    return parts


def _names(packed: Packed) -> dict[int, str]:
    """Return the first argument that uses each group."""
    names: dict[int, str] = {}

    def walk(value: Any, name: str) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("tensor"), int):
                names.setdefault(packed.tensors[value["tensor"]].group, name)
            for item in value.values():
                walk(item, name)
        elif isinstance(value, list):
            for item in value:
                walk(item, name)

    for name, value in packed.tree.items():
        walk(value, name)
    return names


def _touched_rows(overload: str, arguments: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Return the index tensor for each table among the arguments, by the table's name."""
    table, index = _TABLES.get(overload.partition("::")[2].partition(".")[0], ("", ""))
    rows = arguments.get(index)
    if table not in arguments or (overload.startswith("aten::index_select") and arguments.get("dim") != 0):
        return {}
    if isinstance(rows, list | tuple):
        rows = rows[0] if len(rows) == 1 else None
    if isinstance(rows, torch.Tensor) and rows.is_sparse and rows.sparse_dim() == 1:
        rows = rows._indices()
    if not isinstance(rows, torch.Tensor) or rows.dtype not in (torch.int64, torch.int32):
        return {}
    return {table: rows}


def _to_bytes(t: torch.Tensor) -> bytes:
    flat = t.detach().contiguous().reshape(-1).view(torch.uint8).cpu()
    return flat.numpy().tobytes()
