"""What a child and all that it started take of the machine, and their end."""

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

HOME_PREFIX = "enable-"  # of the directory that a zygote and its children have for themselves
MEMORY = struct.Struct("<Q")  # a job's limit in bytes, as it comes over the control socket
LOOK_SECONDS = 0.1  # between two looks at a child's memory, processes and files
BASE_BYTES = 1 << 30  # what torch and triton themselves keep resident, with room
MAX_PROCESSES = 32  # of one child; a compiler is one
DISK_BYTES = 1 << 30  # of a child's work directory; what one launch compiles to takes some 0.3 MB
MAX_FILES = 50_000


def await_end(pid: int, control: socket.socket, work: Path, memory_bytes: int) -> tuple[int, str]:
    """The wait status of child `pid`, and why it was killed here ("": it was not).

    It is killed, with all that it started, when it takes too much or the parent goes away.
    """
    pidfd, why, pause = os.pidfd_open(pid), "", LOOK_SECONDS
    while not why:
        ready = select.select([pidfd, control.fileno()], [], [], pause)[0]
        if ready:
            break
        started = time.monotonic()
        why = excess(pid, work, memory_bytes)
        cost = time.monotonic() - started
        pause = min(1.0, max(LOOK_SECONDS, 20 * cost))  # looking takes a twentieth, as long as that is often enough
    if pidfd not in ready:
        _kill([pid, *descendants(pid)])
    os.close(pidfd)
    status = os.waitpid(pid, 0)[1]
    end_descendants()
    return status, why


def excess(pid: int, work: Path, memory_bytes: int) -> str:
    """What a child takes too much of; "" if nothing. Resident memory is summed over its processes."""
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
    """What process `pid` started and has not lost, with what these started."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *descendants(child)]
    except (FileNotFoundError, ProcessLookupError):
        pass  # it has ended meanwhile; its children are its parent's now
    return found


def end_descendants() -> None:
    """Kill what a child left behind, daemons included: as their subreaper this process inherits them."""
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
    """Bytes on disk and number of entries beneath `directory`; what cannot be looked into counts as too many."""
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
            continue  # removed meanwhile
        except OSError:  # made unreadable, or nested too deep to be named
            return size, MAX_FILES + 1
    return size, files


def remove(directory: Path) -> None:
    """Remove a work directory, whatever was made of it."""
    try:
        shutil.rmtree(directory)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):  # a directory made unreadable, or nested too deep
        subprocess.run(["chmod", "-R", "u+rwx", str(directory)], check=False)
        subprocess.run(["rm", "-rf", str(directory)], check=False)
