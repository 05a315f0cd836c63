"""The parent's side of a child: start it, put cases to it under a deadline, kill its session, tell how it died."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from traces import UserError
from traces.values import Packed
from verify.platforms import Device
from verify.sandbox import confine, wire
from verify.sandbox.nursery import JUDGED, nursery
from verify.sandbox.processes import HOME_PREFIX, MEMORY, remove

END_SECONDS = 5.0  # a zygote ends in milliseconds, unless its child fights back
START_SECONDS = 120.0  # torch and triton import in 2.5 s; a busy machine may take long


class ChildDied(Exception):
    """The child ended before it answered. `timeout`: it was killed at the deadline; else `how` says what ended it.

    keep: whether the kernel is to blame for good; a deadline, a SIGKILL or a lost zygote may be the machine's doing.
    """

    def __init__(self, how: str, timeout: bool = False, keep: bool = False) -> None:
        super().__init__(how)
        self.how = how
        self.timeout = timeout
        self.keep = keep


class Zygote:
    """A pre-imported process of one mode, COMPILE, EXECUTE or DEVICE; started again if it is lost.

    device: of mode DEVICE, where its children run kernels. sandbox: `full`, or `none` for kernels that are
    trusted. runner: what answers a job's requests in its children, as child.serve.Runner: `module:name`. level: what
    holds its children, for the record. Raises UserError if `full` cannot be had.
    """

    def __init__(
        self, mode: str, sandbox: str = confine.FULL, device: Device | None = None, runner: str = JUDGED
    ) -> None:
        self.mode = mode
        self.device = device
        self._runner = runner
        self.level = confine.level(sandbox)
        self._sandbox = sandbox
        self._closed = False
        self._home = tempfile.TemporaryDirectory(prefix=HOME_PREFIX, ignore_cleanup_errors=True)
        self._canary = Path(self._home.name) / "canary"
        self._canary.write_text("untouched")
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        told = {
            "mode": self.mode,
            "runner": self._runner,
            "sandbox": self._sandbox,
            "device": asdict(self.device) if self.device else None,
            "home": self._home.name,
        }
        origin = nursery(self.device.environment if self.device else ())
        self.control = ours
        try:
            with theirs:
                origin.ask(told, theirs.fileno())
            self.pid = wire.receive(ours, time.monotonic() + START_SECONDS)[0]["pid"]
        except (wire.WireError, OSError) as error:
            self.close()
            words = origin.last_words() or str(error)
            raise UserError(f"the {self.mode} process did not start: {words[:300]}") from error

    def fork(self, job: dict[str, Any], log_fd: int | None = None) -> Child:
        """A fresh child that has been sent `job`. log_fd: a file where it notes what it does."""
        try:
            return self._fork(job, log_fd)
        except (wire.WireError, OSError):
            if self._closed:
                raise
            self._kill()  # lost, by a signal or for want of memory: one new start
            self.control.close()
            self._start()
            return self._fork(job, log_fd)

    def _fork(self, job: dict[str, Any], log_fd: int | None) -> Child:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                given = [theirs.fileno()] if log_fd is None else [theirs.fileno(), log_fd]
                socket.send_fds(self.control, [MEMORY.pack(job["memory_bytes"])], given)
            deadline = time.monotonic() + START_SECONDS
            pid = wire.receive(self.control, deadline)[0].get("pid")
            if pid is None:
                raise wire.WireError("closed by another thread, which has read the answer")
            wire.send(ours, job)
            told = wire.receive(ours, deadline)[0]
        except (wire.WireError, OSError):
            ours.close()
            raise
        child = Child(self, pid, ours, job["memory_bytes"])
        if "failed" in told:
            with child:
                place = self.device.place if self.device else self.mode
                raise UserError(f"{place} cannot be used ({told['failed']}); see: enable doctor")
        if self._sandbox == confine.FULL:
            self._check(child, told["denied"])
        return child

    def _check(self, child: Child, denied: list[str]) -> None:
        """Whether a child that has loaded no kernel yet is held: by what it saw refused, and by what is seen here."""
        open_still = confine.PROFILES[self.mode].denied - set(denied)
        if open_still or self._canary.read_text() != "untouched" or self._canary.with_name("created").exists():
            with child:
                raise UserError(
                    f"the sandbox does not hold on this machine ({', '.join(sorted(open_still))} was possible); "
                    f"judge elsewhere, or only kernels that you trust, with --sandbox {confine.NONE}"
                )

    def close(self) -> None:
        """End the process and everything it started. May be called from another thread than the one that waits."""
        self._closed = True
        with suppress(OSError):
            self.control.shutdown(socket.SHUT_WR)  # unlike a kill, this leaves it the time to end its descendants
            self.control.settimeout(END_SECONDS)
            try:
                while self.control.recv(1 << 12):  # what was on its way; then its end of the socket is gone
                    pass
            except TimeoutError:
                self._kill()
        self.control.close()
        remove(Path(self._home.name))
        self._home.cleanup()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class Child:
    """One forked child. A context manager: on leaving it, the child and whatever it started are dead.

    most: bytes that one answer may have; more than the child's memory it cannot be.
    """

    def __init__(self, zygote: Zygote, pid: int, sock: socket.socket, most: int) -> None:
        self._most = most
        self._zygote = zygote
        self._pid = pid
        self._sock = sock

    def ask(
        self, packed: Packed, seconds: float, request: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], list[Any]]:
        """Put one case to the child. request: how to run it. Raises ChildDied; then the child is of no more use."""
        deadline = time.monotonic() + seconds
        self._sock.settimeout(seconds)
        try:
            wire.send_packed(self._sock, request or {}, packed)
            return wire.receive(self._sock, deadline, self._most)
        except wire.WireError as error:
            if error.timeout:
                raise ChildDied(f"no answer within {seconds:g} s", timeout=True) from error
            raise self._death() from error

    def hang_up(self) -> None:
        """Have the thread that waits for an answer find the child dead."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def _death(self) -> ChildDied:
        status, why = self._end()
        if status is None:
            return ChildDied("lost together with the process that forked it")
        if why:
            return ChildDied(f"killed: {why}", keep=True)
        if os.WIFSIGNALED(status):
            ended_by = signal.Signals(os.WTERMSIG(status))
            return ChildDied(f"killed by {ended_by.name}", keep=ended_by is not signal.SIGKILL)
        code = os.waitstatus_to_exitcode(status)
        return ChildDied(f"exited with status {code} before it answered", keep=True)

    def _end(self, grace: float = 1.0) -> tuple[int | None, str]:
        """The child's wait status, and why its zygote killed it ("": it did not); None: the zygote is gone.

        It is killed here if it has not ended within `grace` seconds.
        """
        self._sock.close()
        pid, self._pid = self._pid, 0
        deadline = time.monotonic() + grace
        while True:
            try:
                end = wire.receive(self._zygote.control, deadline)[0]
                return end["status"], end["why"]
            except wire.WireError as error:
                if not error.timeout:
                    return None, ""
                _kill_session(pid)
                deadline = time.monotonic() + START_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._pid:
            _kill_session(self._pid)
            self._end()


def _kill_session(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
