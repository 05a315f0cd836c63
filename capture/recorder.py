"""Record ATen calls with a dispatch mode that counts every call and stores the first of each signature.

Recording does not change the program. Before a call its arguments are copied as bytes; no tensor is kept alive
and no random number is drawn. An error of the recorder itself is counted and never raised.
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
from traces.arguments import checked
from traces.errors import UserError


class Recorder(Observer):
    """Record the ATen calls inside the `with` block into a trace directory.

        with Recorder("step.trace", model=model) as recorder:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            recorder.step()

    Further threads may enter the same recorder. In a job with several ranks each rank writes its own trace,
    such as `step-rank3.trace`. If the block raises, the trace stays marked as unfinished. Recording stops in a
    process that is forked inside the block. If a program never calls `step`, a step ends when the next step's
    work begins after an optimizer step; the manifest's `ended_by` records this.

    Attributes:
        errors: The recorder's own errors by operator name: their count, and the first message.
        skipped: Numbers of calls that were not recorded, by reason.
        failure: The error that prevented the trace from being written, such as a full disk, or None.
    """

    @checked
    def __init__(  # noqa: PLR0913 - each parameter limits the recording, and editors list them
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
        """Prepare to record. Nothing is written before the block begins.

        Sizes are numbers of bytes, or texts such as "100MB" and "2GiB".

        Args:
            path: Directory of the trace. It must not exist, unless `force` is set and it is a trace.
            model: Module to which the trace's module names are relative.
            steps: Number of training steps to record; None for all.
            skip_steps: Number of training steps to skip first.
            phases: Record only calls in these phases: forward, loss, backward, clip, optimizer, or a name
                passed to `phase`. Empty for all.
            ops: Record only overloads that match one of these patterns, such as `aten::mm` or
                `aten::*backward*`. Empty for all.
            values: "full" stores tensor contents, "seeded" stores statistics from which similar contents can be
                drawn, and "stats" stores statistics only.
            max_bytes: Limit on all tensor contents in the trace.
            max_blob: Limit on one contiguous span of tensor contents.
            queue_bytes: Limit on the contents in memory that wait to be written.
            per_signature: Calls to store for each signature.
            per_op_max: Calls to store for each overload; None for no limit.
            max_signatures: Limit on signatures; calls with any further signature are only counted.
            dataflow: Store every call in the first step, and which values it reads, creates and writes.
            force: Replace an existing trace.
            info: Entries for the manifest's `info`.
            native: Directory with a C++ module that computes call keys faster. It is built there if it is
                missing (10 to 30 s). None selects the Python implementation.

        Raises:
            UserError: The directory cannot be used, or a limit is invalid.
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
        if steps.doubtful and self._fence is not None:
            # The program never marked a step: the calls after the fence are surplus.
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
            warnings.warn(f"{self.path}: nothing was recorded: {self.emptiness()}", RuntimeWarning, stacklevel=3)

    def emptiness(self) -> str:
        """Return the reason why the trace contains no call."""
        if self.limits.skip_steps:
            return f"skip_steps is {self.limits.skip_steps}, and the program ended {self._steps.ended} steps"
        if self.limits.phases and (self._other_phases or not self.limits.ops):
            other_phases = ", ".join(sorted(self._other_phases)) or "none"
            return f"no call was in phase {' or '.join(self.limits.phases)}; the program's phases: {other_phases}"
        if self.limits.ops:
            return f"no overload matches ops {', '.join(self.limits.ops)}; write them like aten::mm or aten::*backward*"
        return "no ATen call was made in this block; run the model inside `with Recorder(...)`"

    def _check_entered(self, method: str) -> None:
        if not self._modes:
            raise UserError(f"{self.path}: {method} outside the block; write: with Recorder(...) as recorder: ...")

    def _after_fork(self) -> None:
        """Stop recording in a forked process, and replace the lock, which a thread of the parent may hold.

        The trace itself is not touched, because the parent still writes it.
        """
        self._lock = threading.Lock()
        if self._tape is not None:
            self._recording, self._steady = False, None

    @property
    def contents_bytes(self) -> int:
        """Return the bytes of tensor contents that were captured so far and not given up."""
        return 0 if self._tape is None else self._tape.contents_bytes

    @contextmanager
    @checked
    def phase(self, name: str) -> Iterator[None]:
        """Name the phase of the calls inside this block: forward, loss, backward, clip, optimizer, or another word.

        Outside such blocks, calls under autograd's engine are "backward", calls of `Optimizer.step` are
        "optimizer", and all others are "forward".
        """
        self._check_entered("phase()")
        self._phases.begin(name)
        try:
            yield
        finally:
            self._phases.end()

    def step(self) -> None:
        """End a training step; the calls that follow belong to the next step."""
        self._check_entered("step()")
        self._guarded("step()", self._end_marked_step)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Record nothing inside this block, for example while data is loaded.

        No other dispatch mode may be entered between the recorder's block and this one.
        """
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
        """Restart the trace, because its calls turned out to belong to skipped steps."""
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
