"""Pipeline from the recorder to the disk: a bounded queue and the thread that writes its messages.

Only bytes wait in the queue, never tensors. If the queue is full, the program waits. If writing fails, later messages
are discarded and the program continues.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeAlias

import torch

from capture.device import DeviceMoments
from capture.staging import Chunk, Slots, on_cuda
from traces.counts import SignatureCount
from traces.span import Span
from traces.synthesis import summarise
from traces.values import Packed
from traces.writer import CallSite, TraceWriter

MAX_MESSAGES = 4096
FULL = 1e-3  # seconds between checks of a full queue
IDLE = 0.5  # seconds without work after which everything so far is made durable
PAUSE = 0.02  # seconds without new records from a GPU program, after which writing continues
SAMPLE = 1 << 20  # elements from which statistics are computed

_FENCE = object()

Token: TypeAlias = Any  # hashable; represents a blob until its key is known


@dataclass(frozen=True, slots=True)
class Pending:
    """A content spec whose blobs are still represented by tokens.

    Attributes:
        spec: The spec without blob keys.
        tokens: Tokens by spec field; the field "" means that the spec is only a key.
        dtype: Element type, for statistics if the blob is given up; None if there is no single one.
        fallback: The spec to use if the blob is given up.
    """

    spec: Any
    tokens: dict[str, Token] = field(default_factory=dict)  # "" for a spec that is only a key
    dtype: torch.dtype | None = None
    fallback: Any = None


@dataclass(frozen=True, slots=True)
class Contents:
    """Bytes to store.

    Attributes:
        token: Equal for equal bytes. If it is of type bytes, it is their blake3.
        copy: A copy of the bytes, or None.
        raw: The bytes on a device, or None.
    """

    token: Token
    copy: bytes | None = None
    raw: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class _Blob:
    """A message that announces a blob; `copy` holds its bytes, or is None if they follow in chunks."""

    token: Token
    nbytes: int
    large: bool
    copy: bytes | None = None


@dataclass(frozen=True, slots=True)
class _Drop:
    token: Token
    given_up: bool  # True if calls may refer to it


@dataclass(frozen=True, slots=True)
class StoredCall:
    signature: SignatureCount
    site: CallSite
    arguments: Packed
    contents: list[Pending]
    results: Any
    rng: dict[str, Any] | None


class Pipeline:
    """Feeds a TraceWriter from its own thread.

    Attributes:
        error: The first error in that thread, after which nothing is written; None if there was none.
    """

    def __init__(self, writer: TraceWriter, queue_bytes: int, large: int) -> None:
        """Start the thread.

        Args:
            writer: Receives everything.
            queue_bytes: Bytes of contents that may wait.
            large: Bytes from which a blob can be given up again.
        """
        self.error: Exception | None = None
        self._writer = writer
        self._large = large
        self._slots = Slots(queue_bytes)
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._keys: dict[Token, str] = {}
        self._users: dict[str, list[tuple[int, list[Pending]]]] = defaultdict(list)  # calls that use each large blob
        self._last = time.monotonic()  # time of the last put
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="trace writer", daemon=True)
        self._thread.start()

    def put(self, stored: list[tuple[Contents, Span]]) -> None:
        """Store spans as they are now. Block while the queue is full."""
        self._last = time.monotonic()
        for copied, run in groupby(stored, key=lambda one: one[0].copy is not None):
            members = list(run)
            blobs = [_Blob(c.token, span.nbytes, span.nbytes >= self._large, c.copy) for c, span in members]
            if copied:
                for blob in blobs:
                    self._send(blob)
                continue
            begun = -1
            for i, chunk in self._slots.chunks([(span, contents.raw) for contents, span in members]):
                if i != begun:
                    self._send(blobs[i])
                    begun = i
                self._send(chunk)

    def put_bytes(self, token: Token, data: bytes) -> None:
        """Store bytes that the caller no longer changes."""
        self._send(_Blob(token, len(data), len(data) >= self._large, data))

    def drop(self, token: Token, given_up: bool) -> None:
        """Delete a blob. If `given_up`, amend the calls that refer to it; otherwise no call does."""
        self._send(_Drop(token, given_up))

    def put_call(self, call: StoredCall) -> None:
        """Store a call whose blobs were put before."""
        self._last = time.monotonic()
        self._send(call)

    def _send(self, message: Any) -> None:
        while self._queue.qsize() >= MAX_MESSAGES:
            time.sleep(FULL)
        self._queue.put(message)

    def fence(self) -> None:
        """Mark the position after which stored data may be cut off at the end."""
        self._send(_FENCE)

    def close(self) -> None:
        """Wait until everything is written or discarded."""
        self._closing = True
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        dirty = False
        while True:
            self._give_way()
            try:
                message = self._queue.get(timeout=IDLE if dirty else None)
            except queue.Empty:
                self._guarded(self._writer.flush)
                dirty = False
                continue
            if message is None:
                return
            dirty = True
            self._guarded(lambda message=message: self._handle(message))

    def _give_way(self) -> None:
        """Wait while a GPU program records, because two threads that alternate in Python slow each other down.

        Do not wait if the queue is half full, or if the program has paused or ended.
        """
        while (
            on_cuda()
            and not self._closing
            and time.monotonic() - self._last < PAUSE
            and not self._slots.scarce
            and self._queue.qsize() < MAX_MESSAGES // 2
        ):
            time.sleep(PAUSE / 4)

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - errors must not end the thread; the recorder checks `error`
            self.error = self.error or error

    def _handle(self, message: Any) -> None:
        if isinstance(message, _Blob):
            chunks = self._chunks(message.nbytes) if message.copy is None else iter((memoryview(message.copy),))
            try:
                if self.error is None:
                    self._keys[message.token] = self._store(message, chunks)
            finally:
                for _ in chunks:  # consume all chunks, so that slots are given back in any case
                    pass
        elif isinstance(message, Chunk):  # belongs to a blob that failed
            if message.slot:
                self._slots.give(message.host)
        elif self.error is not None:
            return
        elif message is _FENCE:
            self._writer.fence()
        elif isinstance(message, _Drop):
            self._drop(message)
        else:
            self._add(message)

    def _chunks(self, nbytes: int) -> Iterator[memoryview]:
        while nbytes:
            chunk = self._queue.get()
            try:
                if chunk.ready is not None:
                    chunk.ready.synchronize()
                yield chunk.data
            finally:
                nbytes -= chunk.size
                if chunk.slot:
                    self._slots.give(chunk.host)

    def _store(self, blob: _Blob, chunks: Iterator[memoryview]) -> str:
        if blob.large:
            return self._writer.stream_blob(blob.nbytes, chunks)
        if blob.copy is None:
            # Copied, because a slot is reused after its turn.
            return self._writer.add_blob(b"".join([bytes(c) for c in chunks]))
        return self._writer.add_blob(blob.copy, blob.token.hex() if isinstance(blob.token, bytes) else None)

    def _add(self, call: StoredCall) -> None:
        header = {**call.arguments.header(), "contents": [self._resolved(p) for p in call.contents]}
        rng = call.rng and {**call.rng, "blob": self._keys[call.rng["blob"]]}
        number = self._writer.add_call(call.signature, call.site, header, _measured(call.results), rng)
        for key in {self._keys[token] for pending in call.contents for token in pending.tokens.values()}:
            if self._writer.has_own_shard(key):
                self._users[key].append((number, call.contents))

    def _resolved(self, pending: Pending) -> Any:
        keys = {name: self._keys[token] for name, token in pending.tokens.items()}
        return keys.get("") or ({**pending.spec, **keys} if keys else pending.spec)

    def _drop(self, message: _Drop) -> None:
        key = self._keys.pop(message.token, None)
        if key is None or key in self._keys.values():  # another token still refers to the same bytes
            return
        if message.given_up:
            for number, contents in self._users.pop(key, []):
                specs = self._instead(message.token, key, contents)
                self._writer.amend(number, {i: {**spec, "why": "over --max-bytes"} for i, spec in specs.items()})
            self._writer.flush()
        self._writer.drop_blob(key)

    def _instead(self, token: Token, key: str, contents: list[Pending]) -> dict[str, dict[str, Any]]:
        """Return specs by group for a call that loses a blob.

        If one group falls back to a producer, all groups from a producer do, so that they stay consistent.
        """
        lost = {i: p for i, p in enumerate(contents) if token in p.tokens.values()}
        if any(p.fallback and "from" in p.fallback for p in lost.values()):
            lost |= {i: p for i, p in enumerate(contents) if p.fallback and "from" in p.fallback}
        return {str(i): p.fallback or self._drawn(key, p) for i, p in lost.items()}

    def _drawn(self, key: str, pending: Pending) -> dict[str, Any]:
        if pending.dtype is None:
            return {"level": "meta"}
        elements = torch.from_numpy(self._writer.read_blob(key)).view(pending.dtype)
        return {"level": "seeded", "stats": statistics(elements), "seed": int(key[:8], 16)}


def _measured(results: Any) -> Any:
    """Return the fingerprints with their moments, after waiting for the device to compute these."""
    if isinstance(results, dict):
        return {name: _measured(value) for name, value in results.items()}
    if isinstance(results, list):
        return [_measured(value) for value in results]
    return [m.hex() for m in results.wait()] if isinstance(results, DeviceMoments) else results


def statistics(elements: torch.Tensor, private: bool = False) -> dict[str, Any]:
    """Summarise the elements; for floats, summarise a regular sample."""
    count = elements.numel()
    step = max(1, -(-count // SAMPLE)) if elements.dtype.is_floating_point else 1
    return summarise(elements[::step].to("cpu", copy=True), count, private=private)
