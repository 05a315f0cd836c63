"""From a stored call to its arguments: read, drawn, or reproduced by running earlier stored calls on the CPU again."""

from __future__ import annotations

import json
import math
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from blake3 import blake3
from torch._ops import OpOverload

from traces import contents as spans
from traces.contents import MAX_SYNTHESISED, NotRecorded, Spec
from traces.errors import TraceError, UserError
from traces.facts import tagged
from traces.overloads import positional, resolve
from traces.synthesis import draw
from traces.values import POISON, Bytes, Json, Packed, TensorRef, numel, pack, unpack, unsupported_reason
from traces.widening import answer

if TYPE_CHECKING:
    from traces.records import CallRecord
    from traces.store import Trace

STORAGE_ALIGNMENT = 64  # bytes; minimum alignment of storages from PyTorch's allocators
CACHE_BYTES = 256 << 20  # bytes for reproduced outputs that are cached for other calls in the same trace

REFUSED = tagged("outside_effects")


@dataclass(frozen=True)
class Produced:
    """A tensor by value: its elements in row-major order."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


Outputs = dict[str, Produced]  # by place: the JSON of a `from` entry without its call


class Materialiser:
    """Restores the arguments for one trace's stored calls. Safe to use from several threads."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._cache: OrderedDict[int, Outputs] = OrderedDict()
        self._places: dict[int, dict[str, dict[str, Any]]] | None = (
            None  # `from` entries that refer to each call, by place
        )
        self._lock = threading.Lock()

    def packed(self, record: CallRecord) -> Packed:
        """Return the arguments with bytes for every known group.

        Raise NotRecorded if they cannot be restored, and TraceError if the trace is damaged.
        """
        with self._lock:
            produced = self._produce(record)
        return self._fill(record, produced)

    def _produce(self, record: CallRecord) -> dict[int, Outputs]:
        """Return the outputs that the record needs from other calls, by call id: from the cache, or by running them."""
        needed = producers(self._trace, record, frozenset(self._cache))
        produced = {p.id: self._cache[p.id] for p in needed if p.id in self._cache}
        for producer in needed:
            if producer.id not in produced:
                packed = self._fill(producer, produced)
                produced[producer.id] = _outputs(self._trace, producer, packed, self._asked(producer.id))
            if _nbytes(produced) > MAX_SYNTHESISED:
                raise TraceError(f"{record.where}: its source exceeds {MAX_SYNTHESISED} bytes")
        for key, outputs in produced.items():
            self._cache[key] = outputs
            self._cache.move_to_end(key)
        while _nbytes(self._cache) > CACHE_BYTES:
            self._cache.popitem(last=False)
        return produced

    def _asked(self, call_id: int) -> dict[str, dict[str, Any]]:
        if self._places is None:
            places: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
            for record in self._trace.calls():
                for source in spans.sources(record.contents):
                    places[source["call"]][_output_key(source)] = source
            self._places = places
        return self._places[call_id]

    def _fill(self, record: CallRecord, produced: dict[int, Outputs]) -> Packed:
        header, specs, where = record.header, record.contents, record.where
        if record.level not in spans.REPLAYABLE:
            raise NotRecorded(f"{where}: values not recorded ({record.level})")
        # ranges stand in for the bytes until every size and offset has been checked
        lengths: list[Any] = [
            None if s is None else range(g["nbytes"]) for s, g in zip(specs, header["groups"], strict=True)
        ]
        packed = Packed.from_header(header, lengths, f"{where}: header")
        for i, spec in enumerate(specs):
            window = _Window([t for t in packed.tensors if t.group == i], packed.groups[i].nbytes)
            packed.data[i] = self._span(spec, window, produced, f"{where}: header.contents[{i}]")
        return packed

    def _span(self, spec: Spec, window: _Window, produced: dict[int, Outputs], where: str) -> Bytes | None:
        if spec is None:
            return None
        if isinstance(spec, str):
            return self._trace.blob(spec, window.nbytes, where)
        if spec["level"] == "full":
            ref = window.only(where)
            return window.scatter(self._trace.blob(spec["blob"], numel(ref) * window.itemsize(where), where), where)
        if "from" in spec:
            return _taken(spec["from"], window, produced, where)
        if "ids" in spec:
            return self._ids(spec, window, where)
        _check_count(spec["stats"], window, where)
        drawn = draw(spec["stats"], spec["seed"], window.elements(where), window.dtype(where), f"{where}.stats")
        return drawn if spec["level"] == "seeded" else self._with_rows(spec, window, drawn, where)

    def _with_rows(self, spec: Spec, window: _Window, drawn: bytes, where: str) -> bytes:
        """Return the drawn table with its stored rows inserted."""
        ref, stored = window.only(where), spec["count"]
        if len(ref.shape) < 2 or numel(ref) * window.itemsize(where) != window.nbytes or not _is_contiguous(ref):
            raise TraceError(f"{where}: rows of a tensor of shape {ref.shape}, stride {ref.stride}, expected a table")
        if stored > ref.shape[0]:
            raise TraceError(f"{where}.count is {stored}, the tensor has {ref.shape[0]} rows")
        width = window.nbytes // max(ref.shape[0], 1)
        rows = np.frombuffer(self._trace.blob(spec["rows"], 8 * stored, f"{where}.rows"), dtype="<i8")
        if stored and not (rows[0] >= 0 and rows[-1] < ref.shape[0] and (np.diff(rows) > 0).all()):
            raise TraceError(f"{where}.rows are not ascending numbers below {ref.shape[0]}")
        data = self._trace.blob(spec["blob"], stored * width, f"{where}.blob") if stored * width else b""
        table = np.frombuffer(bytearray(drawn), dtype=np.uint8).reshape(ref.shape[0], width)
        table[rows] = np.frombuffer(data, dtype=np.uint8).reshape(stored, width)
        return table.tobytes()

    def _ids(self, spec: Spec, window: _Window, where: str) -> bytes:
        count, width, low, dtype = spec["count"], spec["width"], spec["low"], window.dtype(where)
        if dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
            raise TraceError(f"{where}: ids for a tensor of {dtype}, expected integers")
        if count != window.elements(where):
            raise TraceError(f"{where}.count is {count}, the span holds {window.elements(where)} elements")
        if not count:
            return b""
        stored = np.frombuffer(self._trace.blob(spec["ids"], count * width, f"{where}.ids"), dtype=f"<u{width}")
        limits = torch.iinfo(dtype)
        if low < limits.min or low + int(stored.max()) > limits.max:
            raise TraceError(f"{where}: low {low} and ids up to {stored.max()} are out of range of {dtype}")
        values = stored.astype(np.uint64) + np.uint64(low % 2**64)  # wraps if low is negative
        return values.astype(f"<u{dtype.itemsize}").tobytes()


def _nbytes(produced: Mapping[int, Outputs]) -> int:
    return sum(len(p.data) for outputs in produced.values() for p in outputs.values())


@dataclass(frozen=True)
class _Window:
    """The tensors that share a span with `nbytes` bytes."""

    tensors: list[TensorRef]
    nbytes: int

    def only(self, where: str) -> TensorRef:
        if len(set(self.tensors)) != 1:
            raise TraceError(f"{where}: {len(set(self.tensors))} tensors share this span, expected one")
        return self.tensors[0]

    def dtype(self, where: str) -> torch.dtype:
        names = {t.dtype for t in self.tensors}
        if len(names) != 1:
            raise TraceError(f"{where}: tensors of {len(names)} dtypes share this span, expected one")
        dtype: torch.dtype = getattr(torch, names.pop())
        return dtype

    def itemsize(self, where: str) -> int:
        return self.dtype(where).itemsize

    def elements(self, where: str) -> int:
        count, rest = divmod(self.nbytes, self.itemsize(where))
        if rest:
            raise TraceError(f"{where}: {self.nbytes} bytes are no whole number of {self.dtype(where)}")
        return count

    def scatter(self, dense: bytes, where: str) -> bytes:
        """Return the span, poisoned except for the elements of its only tensor, which are given in row-major order."""
        ref, itemsize = self.only(where), self.itemsize(where)
        span = np.full(self.nbytes, POISON, dtype=np.uint8)
        if dense:
            strides = [s * itemsize for s in ref.stride]
            start = np.frombuffer(span.data, dtype=f"V{itemsize}", count=1, offset=ref.offset)
            target = np.lib.stride_tricks.as_strided(start, ref.shape, strides)
            target[...] = np.frombuffer(dense, dtype=f"V{itemsize}").reshape(ref.shape)
        return span.tobytes()


def _check_count(stats: dict[str, Any], window: _Window, where: str) -> None:
    elements = window.elements(where)
    if stats.get("count", 0) > elements:
        raise TraceError(f"{where}.stats.count is {stats['count']}, the span holds {elements} elements")


def _is_contiguous(ref: TensorRef) -> bool:
    steps = [math.prod(ref.shape[i + 1 :]) for i in range(len(ref.shape))]
    return all(n == 1 or stride == step for n, stride, step in zip(ref.shape, ref.stride, steps, strict=True))


def _taken(source: dict[str, Any], window: _Window, produced: dict[int, Outputs], where: str) -> bytes:
    ref = window.only(where)
    output = produced[source["call"]].get(_output_key(source))
    if output is None:
        raise TraceError(f"{where}.from: call {source['call']} has no tensor {_output_key(source)}")
    if (output.dtype, output.shape) != (ref.dtype, ref.shape) or ref.conj or ref.neg:
        got = f"{output.dtype}{list(output.shape)}"
        raise TraceError(f"{where}.from: {_output_key(source)} is {got}, the tensor is {ref.dtype}{list(ref.shape)}")
    return window.scatter(output.data, where)


def _output_key(source: dict[str, Any]) -> str:
    return json.dumps({k: v for k, v in source.items() if k in ("output", "argument", "path")}, sort_keys=True)[:200]


def producers(trace: Trace, record: CallRecord, known: frozenset[int] = frozenset()) -> list[CallRecord]:
    """Return the stored calls that must run again to restore this one, in recording order.

    Sources of calls in `known` are not followed.
    """
    by_id: dict[int, CallRecord] = {}
    pending = [record]
    while pending:
        consumer = pending.pop()
        for source in spans.sources(consumer.contents):
            if source["call"] not in by_id:
                by_id[source["call"]] = trace.record(source["call"], consumer.where)
                pending += [] if source["call"] in known else [by_id[source["call"]]]
    return [by_id[i] for i in sorted(by_id)]


def _outputs(trace: Trace, record: CallRecord, packed: Packed, asked: dict[str, dict[str, Any]]) -> Outputs:
    arguments = arguments_of(record, packed)
    outputs = {p: _at(arguments[s["argument"]], s["path"]) for p, s in asked.items() if s.get("argument") in arguments}
    # Arguments are copied here, before the call overwrites them.
    produced = {key: _by_value(t) for key, t in outputs.items() if t is not None}
    if any("output" in source for source in asked.values()):
        try:
            result = run(trace, record, arguments)
        except TraceError:
            raise
        except Exception as error:  # noqa: BLE001 - one item of a batch: ATen may raise anything on recorded arguments
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise NotRecorded(f"{record.where}: {record.overload} cannot be run again ({reason})") from error
        results = {p: _at(result, s["output"]) for p, s in asked.items() if "output" in s}
        produced |= {key: _by_value(t) for key, t in results.items() if t is not None}
    return produced


def _at(value: Any, path: list[int]) -> torch.Tensor | None:
    for i in path:
        if not isinstance(value, list | tuple) or i >= len(value):
            return None
        value = value[i]
    plain = isinstance(value, torch.Tensor) and not value.is_sparse and unsupported_reason(value) is None
    return value if plain else None


def _by_value(t: torch.Tensor) -> Produced:
    dense = t.detach().resolve_conj().resolve_neg().contiguous()
    (data,) = pack({"t": dense}).data
    return Produced(str(t.dtype).removeprefix("torch."), tuple(t.shape), bytes(data or b""))


def arguments_of(record: CallRecord, packed: Packed, device: str | None = "cpu") -> dict[str, Any]:
    """Return the arguments in fresh memory.

    Args:
        record: The stored call.
        packed: Its arguments with bytes.
        device: Device for tensors and device arguments; None keeps each as recorded.

    Returns:
        dict: Arguments by schema name.

    Raises:
        TraceError: If the arguments cannot be rebuilt or do not fit the schema.
    """
    arguments = unpack(packed, f"{record.where}: header", device=device)
    op = operator(record)
    if arguments.keys() != {a.name for a in op._schema.arguments}:
        raise TraceError(f"{record.where}: header.tree names {sorted(arguments)}, the schema is {op._schema}")
    return arguments


def operator(record: CallRecord) -> OpOverload:
    """Return a call's operator.

    Raise NotRecorded if the operator is never run here, and TraceError if PyTorch lacks it.
    """
    if not record.overload.startswith("aten::") or record.overload in REFUSED:
        raise NotRecorded(f"{record.where}: {record.overload[:80]!r} is not an operator that is run again")
    try:
        return resolve(record.overload)
    except UserError as error:
        raise TraceError(f"{record.where}: overload: {error}") from error


def run(trace: Trace, record: CallRecord, arguments: dict[str, Any]) -> Any:
    """Call the record's operator with the recorded CPU generator state. Raise the error that ATen raises, if any."""
    op = operator(record)
    # Some kernels compute differently if gradients are enabled, such as mkldnn_rnn_layer for LSTM.
    with torch.set_grad_enabled(bool(record.grad)), _generator_state(trace, record):
        return answer(op, *positional(op, arguments))


@contextmanager
def _generator_state(trace: Trace, record: CallRecord) -> Iterator[None]:
    """Set the default CPU generator inside the block: to the recorded state, or else seeded with the call's id."""
    with torch.random.fork_rng(devices=[]):
        if record.rng is not None and record.rng["device"] == "cpu":
            state = trace.blob(record.rng["blob"], record.rng["nbytes"], f"{record.where}: rng")
            torch.set_rng_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
        elif record.kind == "random":
            torch.manual_seed(record.id)
        yield


def identity(trace: Trace, record: CallRecord) -> str:
    """Hash the overload, the arguments and everything that decides their contents, equal in every trace.

    The hash has 32 hexadecimal digits. A span that another call produces is represented by that whole call. Alignment
    counts modulo 64 bytes, because storages begin at multiples of 64; a repeated recording thus gets the same hash.
    Raise KeyError or TypeError for a damaged record.
    """
    digests: dict[int, str] = {}
    for producer in producers(trace, record):
        seed = producer.rng or (producer.id if producer.kind == "random" else None)
        digests[producer.id] = _digest([producer.overload, _essence(producer, digests), seed])
    return _digest([record.overload, _essence(record, digests)])


def _digest(value: Json) -> str:
    return blake3(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def _essence(record: CallRecord, digests: dict[int, str]) -> Json:
    def essential(spec: Spec) -> Spec:
        if not isinstance(spec, dict):
            return spec
        kept = {k: v for k, v in spec.items() if k != "why"}
        if "from" in kept:
            kept["from"] = [digests[kept["from"]["call"]], _output_key(kept["from"])]
        return kept

    groups = [{**group, "align": group["align"] % STORAGE_ALIGNMENT} for group in record.header["groups"]]
    return {**record.header, "groups": groups, "contents": [essential(s) for s in record.contents]}
