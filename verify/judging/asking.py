"""Manage one job's children.

Each child processes one case at a time, whichever thread sends it, and is replaced if it died.
"""

from __future__ import annotations

import hashlib
import json
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

HANG_UP_SECONDS = 0.1  # time that close() waits for an answer that is no longer needed


class Children:
    """Children of one job, at most one for each mode, started when first needed.

    Args:
        job: Kernel and plan.
        platform: Platform with limits and targets.
        zygotes: Process for each mode.
        log_fd: File to which the latest child writes its progress, for the debugger.
        cache: Directory for compiled kernels. It has a folder for each set of sources, so that a kernel file
            never reads another's output.
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
        """End all children; waiting threads get no answer, and new requests are refused."""
        self._closed = True
        for mode, turn in self._turns.items():
            while not turn.acquire(timeout=HANG_UP_SECONDS):
                if mode in self._children:
                    self._children[mode][0].hang_up()
            with suppress(KeyError):
                self._drop(mode)
            turn.release()

    def ask(self, mode: str, packed: Packed, request: dict[str, Any]) -> tuple[Reply, Packed | None]:
        """Send a request to the child for `mode`, and return its reply and the wrapper's result.

        The result is None if the wrapper raised. The time limit begins when the child is free.

        Raises:
            ChildDied: The child gave no answer in time, or it ended.
            MalformedReply: The reply is invalid.
            TraceError: The result is inconsistent.
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
            return reply, None  # no kernel ran, so a size that the wrapper read back may be any number

    def _child(self, mode: str) -> Child:
        if mode not in self._children:
            stack = ExitStack()
            header = {**self._header(), "seconds": self._seconds(mode), "cache": self._cache_directory(mode)}
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
            "marks": [mark for mark, _ in self._job.marks],
            "takes_out": self._job.kernel.takes_out,
            "own_defaults": not self._job.strict,
            "targets": [asdict(t) for t in self._platform.targets],
            "target": self._target(),
            "memory_bytes": self._platform.memory_bytes,
            "alignment": self._platform.alignment,
            "limits": self._platform.limits.stated(),
        }

    def _target(self) -> str:
        """Return the target on which kernels run, so that a child without a device uses the same settings."""
        runs = self._zygotes.get(self._platform.mode)
        return runs.device.target if runs is not None and runs.device is not None else ""

    def _cache_directory(self, mode: str) -> str | None:
        """Return the directory for compiled kernels of these sources; None for the interpreter, which needs none."""
        if self._cache is None or mode in (EXECUTE, RERUN):
            return None
        limits = self._platform.limits.stated()  # a cached binary is not checked again
        keys = (*self._job.kernels[1:], *([json.dumps(limits, sort_keys=True)] if limits else []))
        sources = hashlib.sha256("\n".join(keys).encode()).hexdigest()
        directory = self._cache / sources
        directory.mkdir(parents=True, exist_ok=True)
        return str(directory.absolute())  # the child has another working directory
