"""A process that has torch and triton imported and forks one child per job: 0.1 s instead of 2.5 s.

Run as `python -m verify.zygote MODE FD`. Over the control socket FD comes one byte with a job's socket attached; back
go the child's pid and, when it has ended, its wait status.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import sys
from pathlib import Path

from verify import wire

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that forked it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def await_end(pid: int, control: socket.socket) -> int:
    """The wait status of child `pid`; the child is killed first if the parent goes away meanwhile."""
    pidfd = os.pidfd_open(pid)
    ready, _, _ = select.select([pidfd, control.fileno()], [], [])
    os.close(pidfd)
    if control.fileno() in ready:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    end_descendants()
    return status


def end_descendants() -> None:
    """Kill what a child left behind, daemons included: as their subreaper this process inherits them."""
    while pids := _children():
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _children() -> list[int]:
    tasks = Path("/proc/self/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


def serve(mode: str, control: socket.socket) -> None:
    """Fork one child per request until the parent closes the control socket."""
    from verify import child

    child.prepare(mode)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    wire.send(control, {"ready": mode})
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not message:
            return
        pid = os.fork()
        if not pid:
            os.setsid()
            die_with_parent()
            control.close()
            child.serve(mode, socket.socket(fileno=descriptors[0]))
            os._exit(0)
        os.close(descriptors[0])
        wire.send(control, {"pid": pid})
        wire.send(control, {"status": await_end(pid, control)})


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
