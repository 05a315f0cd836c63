"""Start child processes, send cases to them under a deadline, kill their sessions, and report how they died.

Used by the judge (verify/judging) and by everything else that runs code in a sandboxed process.
"""

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
from traces.program import program_name
from traces.values import Packed
from verify.platforms import Device
from verify.sandbox import confine, wire
from verify.sandbox.nursery import JUDGED, nursery
from verify.sandbox.processes import HOME_PREFIX, MEMORY, remove

END_SECONDS = 5.0  # a zygote ends within milliseconds, unless its child resists
START_SECONDS = 120.0  # importing torch and triton takes 2.5 s; it may take far longer on a busy machine


class ChildDied(Exception):
    """Error raised if a child ends before it answers.

    Attributes:
        how: Reason for the end, for reports.
        timeout: True if the child was killed at its deadline.
        keep: True if the kernel is certainly to blame, so that the verdict may be stored. A deadline, a SIGKILL
            or a lost zygote may have been caused by the machine.
    """

    def __init__(self, how: str, timeout: bool = False, keep: bool = False) -> None:
        super().__init__(how)
        self.how = how
        self.timeout = timeout
        self.keep = keep


class Zygote:
    """Process with torch imported from which the children of one mode (COMPILE, EXECUTE or DEVICE) are forked.

    It is restarted if it is lost. `level` describes the confinement of its children, for the verdict.

    Args:
        mode: One of COMPILE, EXECUTE and DEVICE of verify/platforms.py.
        sandbox: `full`, or `none` for trusted kernels.
        device: Device on which the children run kernels; mode DEVICE only.
        runner: Class that answers the requests of a job in the children, as `module:name`; see
            child.serve.Runner.

    Raises:
        UserError: The sandbox `full` is not available on this machine, or the process did not start.
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
        request = {
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
                origin.ask(request, theirs.fileno())
            self.pid = wire.receive(ours, time.monotonic() + START_SECONDS)[0]["pid"]
        except (wire.WireError, OSError) as error:
            self.close()
            words = origin.last_words() or str(error)
            raise UserError(f"the {self.mode} process did not start: {words[:300]}") from error

    def fork(self, job: dict[str, Any], log_fd: int | None = None) -> Child:
        """Fork a fresh child and send it `job`; the child logs its progress to `log_fd`, if given."""
        try:
            return self._fork(job, log_fd)
        except (wire.WireError, OSError):
            if self._closed:
                raise
            self._kill()  # the zygote was lost, by a signal or for lack of memory: restart it once
            self.control.close()
            self._start()
            return self._fork(job, log_fd)

    def _fork(self, job: dict[str, Any], log_fd: int | None) -> Child:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                descriptors = [theirs.fileno()] if log_fd is None else [theirs.fileno(), log_fd]
                socket.send_fds(self.control, [MEMORY.pack(job["memory_bytes"])], descriptors)
            deadline = time.monotonic() + START_SECONDS
            pid = wire.receive(self.control, deadline)[0].get("pid")
            if pid is None:
                raise wire.WireError("closed by another thread, which has read the answer")
            wire.send(ours, job)
            status = wire.receive(ours, deadline)[0]
        except (wire.WireError, OSError):
            ours.close()
            raise
        child = Child(self, pid, ours, job["memory_bytes"])
        if "failed" in status:
            with child:
                name = self.device.place if self.device else self.mode
                raise UserError(f"{name} cannot be used ({status['failed']}); see: {program_name()} doctor")
        if self._sandbox == confine.FULL:
            self._check(child, status["denied"])
        return child

    def _check(self, child: Child, denied: list[str]) -> None:
        """Raise UserError unless the sandbox holds a child that has loaded no kernel yet.

        Both sides are checked: the child reports which attempts were denied, and the parent looks at the canary
        file.
        """
        open_still = confine.PROFILES[self.mode].denied - set(denied)
        if open_still or self._canary.read_text() != "untouched" or self._canary.with_name("created").exists():
            with child:
                raise UserError(
                    f"the sandbox does not hold on this machine ({', '.join(sorted(open_still))} was possible); "
                    f"judge elsewhere, or only kernels that you trust, with --sandbox {confine.NONE}"
                )

    def close(self) -> None:
        """End the process and everything it started; a thread other than the waiting one may call this."""
        self._closed = True
        with suppress(OSError):
            self.control.shutdown(socket.SHUT_WR)  # unlike a kill, this gives it time to end its descendants
            self.control.settimeout(END_SECONDS)
            try:
                while self.control.recv(1 << 12):  # drain pending messages until the peer closes its end of the socket
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
    """One forked child, used as a context manager: on exit, the child and its descendants are dead.

    Args:
        zygote: Process that forked the child.
        pid: Process id of the child.
        sock: Socket to the child.
        max_bytes: Maximum bytes in one answer. An answer cannot exceed the child's memory.
    """

    def __init__(self, zygote: Zygote, pid: int, sock: socket.socket, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._zygote = zygote
        self._pid = pid
        self._sock = sock

    def ask(
        self, packed: Packed, seconds: float, request: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], list[Any]]:
        """Send one case to the child and return the header and the buffers of its answer.

        Args:
            packed: The call with its tensors.
            seconds: Time limit for the answer.
            request: How to run the case.

        Raises:
            ChildDied: The child gave no answer in time, or it ended. The child cannot be used any more.
        """
        deadline = time.monotonic() + seconds
        self._sock.settimeout(seconds)
        try:
            wire.send_packed(self._sock, request or {}, packed)
            return wire.receive(self._sock, deadline, self._max_bytes)
        except wire.WireError as error:
            if error.timeout:
                raise ChildDied(f"no answer within {seconds:g} s", timeout=True) from error
            raise self._death() from error

    def hang_up(self) -> None:
        """Shut down the socket, so that a thread waiting for an answer sees the child as dead."""
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
        """Return the child's wait status, and the reason if its zygote killed it ("" otherwise).

        The status is None if the zygote is gone. The child is killed if it has not ended within `grace` seconds.
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
