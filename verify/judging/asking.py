"""The children of one job: each is asked one case at a time, whichever thread asks, and has a successor if it died."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from traces import TraceError
from traces.subgraphs import definitions
from traces.values import Packed
from verify.judging.job import Job
from verify.judging.reply import Reply
from verify.judging.rerun import RERUN
from verify.platforms import COMPILE, EXECUTE, Platform
from verify.sandbox import wire
from verify.sandbox.children import Child, ChildDied, Zygote

HANG_UP_SECONDS = 0.1  # that the end of a job waits for an answer which nobody needs


class Children:
    """One of each mode at most, started when first needed.

    log_fd: a file in which the latest child notes what it does, for the debugger. cache: where compiled kernels are
    kept, by the sources that take part, so that a kernel file reads what no other wrote.
    """

    def __init__(
        self, job: Job, platform: Platform, zygotes: dict[str, Zygote], log_fd: int | None, cache: Path | None
    ) -> None:
        self._job = job
        self._platform = platform
        self._zygotes = zygotes
        self._log_fd = log_fd
        self._cache = cache
        self._children: dict[str, tuple[Child, ExitStack]] = {}
        self._turns = {mode: Lock() for mode in (COMPILE, platform.mode, RERUN)}
        self._closed = False

    def close(self) -> None:
        """End them; a thread that waits for an answer gets none, and none is asked any more."""
        self._closed = True
        for mode, turn in self._turns.items():
            while not turn.acquire(timeout=HANG_UP_SECONDS):
                if mode in self._children:
                    self._children[mode][0].hang_up()
            with suppress(KeyError):
                self._drop(mode)
            turn.release()

    def ask(self, mode: str, packed: Packed, request: dict[str, Any]) -> tuple[Reply, Packed | None]:
        """A child's reply, and what the wrapper returned; None if it raised. The time begins when its turn has come.

        Raises ChildDied, MalformedReply, and TraceError where what it returned does not hold together.
        """
        with self._turns[mode]:
            if self._closed:
                raise ChildDied("nobody waits for the answer")
            try:
                header, buffers = self._child(mode).ask(packed, self._seconds(mode), request)
            except ChildDied as death:
                self._drop(mode)
                raise ChildDied(f"{mode}: {death.how}", death.timeout, death.keep) from death
            reply = Reply.read(header)
            if reply.lost:
                self._drop(mode)
        if reply.lost or reply.status != "ok":
            return reply, None
        try:
            return reply, wire.packed_of(header, buffers, "answer")
        except TraceError:
            if mode != COMPILE:
                raise
            return reply, None  # no kernel ran: a size that the wrapper read back is any number

    def _child(self, mode: str) -> Child:
        if mode not in self._children:
            stack = ExitStack()
            header = {**self._header(), "seconds": self._seconds(mode), "cache": self._kept(mode)}
            child = stack.enter_context(self._zygotes[mode].fork({**header, "rerun": mode == RERUN}, self._log_fd))
            self._children[mode] = (child, stack)
        return self._children[mode][0]

    def _seconds(self, mode: str) -> float:
        return self._platform.compile_seconds if mode == COMPILE else self._platform.execute_seconds

    def _drop(self, mode: str) -> None:
        _, stack = self._children.pop(mode)
        stack.close()

    def _header(self) -> dict[str, Any]:
        return {
            "plan": asdict(self._job.plan),
            "subgraphs": definitions(self._job.plan.overload),
            **self._job.files,
            "takes_out": self._job.kernel.takes_out,
            "own_defaults": not self._job.strict,
            "targets": [asdict(t) for t in self._platform.targets],
            "target": self._target(),
            "memory_bytes": self._platform.memory_bytes,
            "alignment": self._platform.alignment,
        }

    def _target(self) -> str:
        """What kernels run on, so that a child which knows no device launches with the same settings."""
        runs = self._zygotes.get(self._platform.mode)
        return runs.device.target if runs is not None and runs.device is not None else ""

    def _kept(self, mode: str) -> str | None:
        """Where a child that compiles finds what these sources compiled to; the interpreter's has no use for it."""
        if self._cache is None or mode in (EXECUTE, RERUN):
            return None
        sources = hashlib.sha256("\n".join(self._job.kernels[1:]).encode()).hexdigest()
        directory = self._cache / sources
        directory.mkdir(parents=True, exist_ok=True)
        return str(directory.absolute())  # the child works elsewhere
