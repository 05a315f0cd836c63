"""The recorder: a dispatch mode that sees every ATen call, counts it, and stores the first of each signature.

Nothing in the program changes: arguments are copied before a call as bytes, no tensor is kept, no random number is
drawn, and an error of the recorder itself is counted, never raised.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from types import TracebackType
from typing import Any

import torch

from capture.flow import FlowTape
from capture.forks import watch
from capture.limits import Limits, Size, Values, parse_size
from capture.mode import Mode
from capture.observer import ELSEWHERE, Observer
from capture.stance import force_eager
from capture.tape import Tape, of_this_rank
from traces.errors import UserError


class Recorder(Observer):
    """Records the ATen calls made inside its `with` block into a trace directory.

        with Recorder("step.trace", model=model) as recorder:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            recorder.step()

    Further threads may enter the same recorder. In a job of several ranks each writes a trace of its own, such as
    `step-rank3.trace`. If the block raises, the trace stays marked as unfinished. In a process forked inside the block
    recording stops. In a program that never calls `step`, a step ends where the next one's work begins after a step of
    an optimizer; the manifest's `ended_by` says so.

    Attributes:
        errors: Errors of the recorder itself, by operator: their number, and the first.
        skipped: Numbers of calls that were not recorded, by reason.
        failure: The error that kept the trace from being written, such as a full disk, or None.
    """

    def __init__(  # noqa: PLR0913 - each says what is recorded, and editors show each
        self,
        path: str | os.PathLike[str],
        *,
        model: torch.nn.Module | None = None,
        steps: int | None = None,
        skip_steps: int = 0,
        phases: Sequence[str] = (),
        ops: Sequence[str] = (),
        values: Values = "full",
        max_bytes: Size = Limits.max_bytes,
        max_blob: Size = Limits.max_blob,
        queue_bytes: Size = Limits.queue_bytes,
        per_signature: int = 1,
        per_op_max: int | None = None,
        max_signatures: int = Limits.max_signatures,
        dataflow: bool = False,
        force: bool = False,
        info: dict[str, Any] | None = None,
        native: str | os.PathLike[str] | None = None,
    ) -> None:
        """Prepare to record; nothing is written before the block begins.

        Sizes are bytes, or texts such as "100MB" and "2GiB".

        Args:
            path: Directory of the trace. It must not exist, unless `force` is set and it is a trace.
            model: Names of modules in the trace are relative to it.
            steps: Number of training steps to record; None for all.
            skip_steps: Number of training steps to let pass first.
            phases: Record only the calls of these phases: forward, loss, backward, clip, optimizer, or a name given to
                `phase`. Empty for all.
            ops: Record only the overloads that match one of these patterns, such as `aten::mm` or `aten::*backward*`.
                Empty for all.
            values: "full" stores contents of tensors, "seeded" statistics from which like contents can be drawn,
                "stats" statistics only.
            max_bytes: Size of all tensor contents of the trace.
            max_blob: Size of one contiguous span of tensor contents.
            queue_bytes: Size of the contents in memory that wait to be written.
            per_signature: Number of stored calls of each signature.
            per_op_max: Number of stored calls of each overload; None for no limit.
            max_signatures: After so many signatures, calls with yet another one are only counted.
            dataflow: Store every call of the first step, and which values it reads, makes and writes.
            force: Replace a trace that exists.
            info: Entries of the manifest's `info`.
            native: Directory of a C++ module that tells calls apart faster; it is built there if it is missing
                (10 to 30 s). None for Python.

        Raises:
            UserError: The directory cannot be used, or a limit makes no sense.
        """
        limits = Limits(
            max_bytes=parse_size(max_bytes),
            max_blob=parse_size(max_blob),
            per_signature=per_signature,
            per_op_max=per_op_max,
            steps=steps,
            skip_steps=skip_steps,
            phases=tuple(phases),
            ops=tuple(ops),
            values=values,
            queue_bytes=parse_size(queue_bytes),
            max_signatures=max_signatures,
            dataflow=dataflow,
        )
        super().__init__(limits, model, native)
        self.path = os.fspath(path)
        self.failure: Exception | None = None
        self._force, self._info = force, info
        self._stack = ExitStack()
        watch(self)

    def __enter__(self) -> Recorder:
        thread = threading.get_ident()
        with self._lock:
            if thread in self._modes:
                raise UserError(f"{self.path}: this recorder is already recording in this thread")
            if not self._modes:
                self._start()
            mode = self._modes[thread] = Mode(self)
        mode.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        thread = threading.get_ident()
        self._modes[thread].__exit__(kind, value, trace)  # type: ignore[no-untyped-call]
        with self._lock:
            del self._modes[thread]
            self._recording = self._recording and kind is None
            if not self._modes:
                self._finish()

    def _start(self) -> None:
        if self._tape is not None:
            raise UserError(f"{self.path}: a recorder records once; make another Recorder with a path of its own")
        self.path = of_this_rank(self.path)
        self._tape = self._new_tape(self._force)
        self._modules.start()
        self._stack.enter_context(force_eager())  # compiled code would hide its operators

    def _new_tape(self, force: bool) -> Tape:
        return Tape(self.path, self.limits, {**(self._info or {}), "limits": asdict(self.limits)}, force)

    def _finish(self) -> None:
        self._stack.close()
        self._modules.stop()
        self._drain()
        self._tallies.settle()
        steps = self._steps
        if steps.doubtful and self._fence is not None:  # the program never marked a step: these calls are too many
            seq, self.skipped = self._fence
            self.skipped[ELSEWHERE] += self._seq - seq
        totals = {
            "skipped": dict(self.skipped),
            "errors": self.errors,
            "whole": sorted(self._whole),
            "steps": steps.count,
            "ended_by": steps.ended_by,
        }
        if self._tape is not None:
            flow = self._flow.finish() if self._flow is not None else None
            self.failure = self._tape.close(self._recording, steps.doubtful, steps.first, flow, **totals)
        if self.failure is not None:
            warnings.warn(f"{self.path} is incomplete: {self.failure}", RuntimeWarning, stacklevel=3)
        elif not self._entries and self._recording:
            warnings.warn(f"{self.path}: nothing was recorded: {self._emptiness()}", RuntimeWarning, stacklevel=3)

    def _emptiness(self) -> str:
        """Return why there is no call in the trace."""
        if self.limits.skip_steps:
            return f"skip_steps is {self.limits.skip_steps}, and the program ended {self._steps.ended} steps"
        if self.limits.phases:
            others = ", ".join(sorted(self._other_phases)) or "none"
            return f"no call was in phase {' or '.join(self.limits.phases)}; the program's phases: {others}"
        if self.limits.ops:
            return f"no overload matches ops {', '.join(self.limits.ops)}; write them like aten::mm or aten::*backward*"
        return "no ATen call was made in this block; run the model inside `with Recorder(...)`"

    def _check_entered(self, method: str) -> None:
        if not self._modes:
            raise UserError(f"{self.path}: {method} outside the block; write: with Recorder(...) as recorder: ...")

    def _after_fork(self) -> None:
        """In a forked process: leave the trace alone, and replace the lock, which a thread of the parent may hold."""
        self._lock = threading.Lock()
        if self._tape is not None:
            self._recording, self._steady = False, None

    @property
    def contents_bytes(self) -> int:
        """Bytes of tensor contents that were taken so far and are not given up."""
        return 0 if self._tape is None else self._tape.contents_bytes

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Name what the program does inside this block: forward, loss, backward, clip, optimizer, or a word of its own.

        Outside such blocks, calls under autograd's engine are "backward", those of `Optimizer.step` are "optimizer",
        and all others "forward".
        """
        self._check_entered("phase()")
        self._phases.begin(name)
        try:
            yield
        finally:
            self._phases.end()

    def step(self) -> None:
        """End a training step; the calls that follow belong to the next one."""
        self._check_entered("step()")
        self._guarded("step()", self._end_marked_step)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Record nothing inside this block, such as the loading of data. No other dispatch mode may lie in between."""
        self._check_entered("pause()")
        mode = self._modes[threading.get_ident()]
        mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        self._modules.stop()
        try:
            yield
        finally:
            self._follow_modules()
            mode.__enter__()  # type: ignore[no-untyped-call]

    def _end_marked_step(self) -> None:
        restarts = self._steps.restarts
        self._end_step(self._steps.end)
        if restarts and self._entries:
            self._restart()

    def _restart(self) -> None:
        """Begin the trace anew: what is in it turned out to belong to skipped steps."""
        assert self._tape is not None
        self.skipped[ELSEWHERE] += self._seq
        tape, self._tape = self._tape, None
        tape.abandon()
        self._entries, self._tallies, self._stored = {}, self._tallies.anew(), Counter()
        self._flow = FlowTape() if self.limits.dataflow else None
        self._seq, self._settled, self._steady = 0, 1, None
        try:
            self._tape = self._new_tape(force=False)
        except (OSError, UserError) as error:
            self._recording, self.failure = False, error
