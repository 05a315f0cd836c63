"""Storage for sampled calls: the arguments before a call runs, and its results."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from blake3 import blake3

from capture import policy
from capture.budget import BlobBudget
from capture.device import start_moments
from capture.limits import Limits
from capture.pipeline import Pipeline, StoredCall
from capture.policy import Policy, Taken
from capture.producers import PRODUCERS, Producers, keys
from capture.unseen import Aliases
from traces.counts import SignatureCount
from traces.dataflow import Dataflow
from traces.errors import UserError
from traces.fingerprint import results
from traces.overloads import base_name, name_of, unread, written
from traces.values import Packed, lay_out
from traces.writer import CallSite, TraceWriter

if TYPE_CHECKING:
    from capture.flow import FlowBegun, FlowTape
    from capture.plans import CapturePlan


@dataclass(slots=True)
class TapeEntry:
    """One signature in a recording.

    Attributes:
        signature: Its counter.
        wanted: How many more of its calls to store.
        stored: Ids of its stored calls.
    """

    signature: SignatureCount
    wanted: int
    stored: list[int]


@dataclass(frozen=True, slots=True)
class Sample:
    """A call that is stored if it returns; lives no longer than the call itself.

    Attributes:
        op: The overload.
        entry: Its signature.
        site: Its place in the recording.
        arguments: Packed arguments without contents.
        taken: Contents to store, as they were before the call.
        mutated: Arguments that the call writes, by name.
        inputs: If the call is a producer, names of its arguments; see `capture.producers.keys`.
        rng: Device, blob and length of the generator state.
    """

    op: Any
    entry: TapeEntry
    site: CallSite
    arguments: Packed
    taken: Taken
    mutated: dict[str, Any]
    inputs: dict[tuple[Any, ...], Any] | None
    rng: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class SeenCall:
    """A call that needs more work after it has returned.

    Attributes:
        plan: The operator's plan.
        tape: The tape that was in use when the call began.
        entry: Its signature.
        sample: What to store, or None.
        inputs: Arguments of a producer that is not sampled.
        flow: Its place in the dataflow, if that is recorded.
        aliases: Plain tensors that replace those of subclasses.
    """

    plan: CapturePlan
    tape: Tape
    entry: TapeEntry
    sample: Sample | None
    inputs: dict[str, Any] | None
    flow: FlowBegun | None = None
    aliases: Aliases = field(default_factory=list)

    def discard(self, flow: FlowTape | None) -> None:
        """Forget the call, because it raised. `flow` is the dataflow being recorded, if any."""
        if self.sample is not None:
            self.tape.discard(self.sample)
        if self.flow is not None and flow is not None:
            flow.discard(self.flow)


class Tape:
    """A trace being recorded. Not safe for several threads at once."""

    def __init__(self, path: str | os.PathLike[str], limits: Limits, info: dict[str, Any], force: bool) -> None:
        """Open the trace. Raise UserError if the directory cannot be created."""
        if os.path.lexists(path) and not force:
            raise UserError(
                f"{os.fspath(path)} exists; pass force=True to replace it, or give the recorder another path"
            )
        self._limits = limits
        self._writer = TraceWriter(path, info, force)
        least, most = policy.LARGE
        large = min(max(limits.max_bytes // 256, least), most)
        self._budget = BlobBudget(limits.max_bytes, large)
        self._pipeline = Pipeline(self._writer, limits.queue_bytes, large)
        self._policy = Policy(limits, self._pipeline, self._budget)
        self._producers = Producers()
        self._uses: dict[Any, int] = {}  # number of stored calls that use each blob
        self._calls = 0
        self.signature = self._writer.signature

    @property
    def contents_bytes(self) -> int:
        """Return the bytes of contents that the budget currently holds."""
        return self._budget.used

    def take(self, op: Any, entry: TapeEntry, site: CallSite, arguments: dict[str, Any]) -> Sample:
        """Copy everything to be stored for a call that is about to run."""
        if self._pipeline.error is not None:
            raise self._pipeline.error
        name, base = name_of(op), base_name(op)
        sources = self._producers.sources(arguments) if "backward" in base else {}
        inputs = keys(arguments) if base in PRODUCERS else None
        mutated = {n: arguments[n] for n in written(op)}
        rng = self._rng(name, arguments) if entry.signature.kind == "random" else None
        # A sparse tensor cannot be rebuilt with unknown indices, so its contents are always recorded.
        skip = frozenset(n for n in unread(op) if not _is_sparse(arguments[n]))
        packed, spans = lay_out(_without_generator(arguments), skip)
        taken = self._policy.take(name, arguments, packed, spans, sources)
        return Sample(op, entry, site, packed, taken, mutated, inputs, rng)

    def commit(self, sample: Sample, result: Any) -> int:
        """Store a call that has returned, and return its id."""
        taken, entry = sample.taken, sample.entry
        everything = frozenset((*sample.mutated, "return"))
        private = self._limits.values != "full"
        skip = everything if private or taken.partial & sample.mutated.keys() else frozenset()
        fingerprints = results(sample.op, sample.mutated, result, skip, measure=start_moments)
        for pending in taken.contents:
            for token in pending.tokens.values():
                self._uses[token] = self._uses.get(token, 0) + 1
        self.discard(sample)  # drops blobs that it added but no longer needs
        self._pipeline.put_call(
            StoredCall(entry.signature, sample.site, sample.arguments, taken.contents, fingerprints, sample.rng)
        )
        entry.stored.append(self._calls)
        self._calls += 1
        return entry.stored[-1]

    def discard(self, sample: Sample) -> None:
        """Drop the blobs that a call added and no stored call uses, because it raised or is no longer wanted."""
        for token in sample.taken.fresh:
            if token in self._budget and not self._uses.get(token):
                self._budget.release(token)
                self._pipeline.drop(token, given_up=False)

    def follow(self, arguments: dict[str, Any] | None, result: Any, entry: TapeEntry, sample: Sample | None) -> None:
        """Record the results of a producer, stored or not."""
        inputs = sample.inputs if sample is not None else keys(arguments or {})
        self._producers.produced(result, inputs or {}, entry.stored)

    def forget(self, arguments: Iterator[torch.Tensor]) -> None:
        """Forget the producers of these tensors, which are about to be written."""
        for t in arguments:
            self._producers.forget(t)

    def fence(self) -> None:
        """Mark the current end of the trace, because later calls may have to be cut off.

        Later calls cannot take bytes from blobs that are stored already.
        """
        self._budget.fence()
        self._writer.keep_counts()
        self._pipeline.fence()

    def close(
        self, complete: bool, cut: bool = False, first: int = 0, flow: Dataflow | None = None, **totals: Any
    ) -> Exception | None:
        """Finish the trace, and return the error that occurred while writing, if any.

        Args:
            complete: False leaves the trace marked as unfinished.
            cut: Discard everything after the fence.
            first: Merge all steps up to this number into one.
            flow: Dataflow to store.
            **totals: Further entries for the manifest.
        """
        self._pipeline.close()
        error = self._pipeline.error
        used = self._budget.fenced if cut else self._budget.used
        try:
            if flow is not None and complete and error is None:
                self._writer.add_dataflow(flow)
            self._writer.close(complete and error is None, cut, first, contents_bytes=used, **totals)
        except OSError as failure:
            error = error or failure
        return error

    def abandon(self) -> None:
        """Delete the trace."""
        self._pipeline.close()
        self._writer.abandon()

    def _rng(self, name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        if self._limits.values != "full":
            return None
        device, state = generator_state(arguments)
        token = ("rng", blake3(state).digest())
        if token not in self._budget:
            if self._budget.admit(name, {token: len(state)}, keep=True) is None:
                return None
            self._pipeline.put_bytes(token, state)
        return {"device": device, "blob": token, "nbytes": len(state)}


def is_producer(op: Any) -> bool:
    """Return True if a backward operator takes results of this one."""
    return base_name(op) in PRODUCERS


def of_this_rank(path: str) -> str:
    """Return the path, or a path beside it for this rank if the distributed job has several ranks."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized() or distributed.get_world_size() == 1:
        return path
    stem, suffix = os.path.splitext(path)
    return f"{stem}-rank{distributed.get_rank()}{suffix}"


def is_capturing_graph() -> bool:
    """Return True while a CUDA graph is captured, when nothing may be copied to the host."""
    initialised: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return initialised and torch.cuda.is_current_stream_capturing()


def tensors(arguments: dict[str, Any]) -> Iterator[torch.Tensor]:
    """Yield all tensors among the arguments."""
    for value in arguments.values():
        yield from (v for v in (value if isinstance(value, list | tuple) else (value,)) if isinstance(v, torch.Tensor))


def device_of(arguments: dict[str, Any]) -> torch.device:
    """Return the device on which a call runs: its `device` argument, or the device of its first tensor."""
    device = arguments.get("device")  # a custom operator may use this name for another type
    if isinstance(device, torch.device):
        return device
    return next((t.device for t in tensors(arguments)), torch.device("cpu"))


def place_of(arguments: dict[str, Any]) -> str:
    """Return the device that a call is for: the first non-CPU device among its arguments, or cpu."""
    named = arguments.get("device")
    devices = [*([named] if isinstance(named, torch.device) else []), *(t.device for t in tensors(arguments))]
    return str(next((d for d in devices if d.type != "cpu"), "cpu"))


def touches_meta(arguments: dict[str, Any]) -> bool:
    """Return True if a call has no contents, because it reads or creates meta tensors."""
    return device_of(arguments).type == "meta" or any(t.device.type == "meta" for t in tensors(arguments))


def generator_state(arguments: dict[str, Any]) -> tuple[str, bytes]:
    """Return device and state of the generator from which the call is about to draw, without advancing it."""
    generator = arguments.get("generator")
    if isinstance(generator, torch.Generator):
        device, state = generator.device, generator.get_state()
    else:
        device = device_of(arguments)
        state = torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()
    return str(device), bytes(state.numpy().data)


def _is_sparse(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_sparse


def _without_generator(arguments: dict[str, Any]) -> dict[str, Any]:
    """Replace generators with None: their state is stored, and a replay puts it into the default generator."""
    return {name: None if isinstance(value, torch.Generator) else value for name, value in arguments.items()}
