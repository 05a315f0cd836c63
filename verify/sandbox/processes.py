"""Measure and limit the memory, processes and files of a child and its descendants, and end them."""

from __future__ import annotations

import os
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

HOME_PREFIX = "enable-"  # name prefix for the private directory of a zygote and its children
MEMORY = struct.Struct("<Q")  # memory limit of a job in bytes, as sent over the control socket
LOOK_SECONDS = 0.1  # interval between two checks of a child's memory, processes and files
BASE_BYTES = 1 << 30  # resident size of torch and triton themselves, with a margin
MAX_PROCESSES = 32  # for one child; each compiler process counts
DISK_BYTES = 1 << 30  # for the work directory of a child; one compiled launch takes about 0.3 MB
MAX_FILES = 50_000


def await_end(pid: int, control: socket.socket, work: Path, memory_bytes: int) -> tuple[int, str]:
    """Wait for child `pid` and return its wait status and the reason if it was killed here ("" otherwise).

    The child and its descendants are killed if they exceed a limit or if the parent goes away.
    """
    pidfd, why, pause = os.pidfd_open(pid), "", LOOK_SECONDS
    while not why:
        ready = select.select([pidfd, control.fileno()], [], [], pause)[0]
        if ready:
            break
        started = time.monotonic()
        why = excess(pid, work, memory_bytes)
        cost = time.monotonic() - started
        # checks take at most one twentieth of the time, as long as that is at least one check a second
        pause = min(1.0, max(LOOK_SECONDS, 20 * cost))
    if pidfd not in ready:
        _kill([pid, *descendants(pid)])
    os.close(pidfd)
    status = os.waitpid(pid, 0)[1]
    end_descendants()
    return status, why


def excess(pid: int, work: Path, memory_bytes: int) -> str:
    """Return a message about the limit that a child exceeds, or "" if it exceeds none.

    Resident memory is summed over the child's processes.
    """
    pids = [pid, *descendants(pid)]
    if len(pids) > MAX_PROCESSES:
        return f"it started more than {MAX_PROCESSES} processes"
    if sum(map(_resident, pids)) > BASE_BYTES + memory_bytes:
        return f"it took more than {memory_bytes >> 20} MiB of memory"
    size, files = _disk(work)
    if size > DISK_BYTES or files > MAX_FILES:
        return f"it left more than {DISK_BYTES >> 20} MiB or {MAX_FILES} files in its work directory"
    return ""


def descendants(pid: int) -> list[int]:
    """Return the process ids of the living descendants of process `pid`."""
    pids: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                pids += [child, *descendants(child)]
    except (FileNotFoundError, ProcessLookupError):
        pass  # it ended in the meantime, and its children were reparented
    return pids


def end_descendants() -> None:
    """Kill everything that a child left behind, including daemons.

    This process is their subreaper, so it inherits them.
    """
    while pids := descendants(os.getpid()):
        _kill(pids)
        try:
            while os.waitpid(-1, 0):
                pass
        except ChildProcessError:
            continue


def _kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _disk(directory: Path) -> tuple[int, int]:
    """Return the bytes on disk and the number of entries beneath `directory`.

    A directory that cannot be read counts as too many files.
    """
    size = files = 0
    waiting = [str(directory)]
    while waiting and files <= MAX_FILES:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    files += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
        except FileNotFoundError:
            continue  # removed in the meantime
        except OSError:  # made unreadable, or its path is too long
            return size, MAX_FILES + 1
    return size, files


def remove(directory: Path) -> None:
    """Remove a work directory, even if a kernel made parts of it unreadable."""
    try:
        shutil.rmtree(directory)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):  # a directory made unreadable, or nested too deep
        subprocess.run(["chmod", "-R", "u+rwx", str(directory)], check=False)
        subprocess.run(["rm", "-rf", str(directory)], check=False)
