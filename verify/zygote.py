"""A process that has torch and triton imported and forks one child per job: 0.1 s instead of 2.5 s.

Run as `python -m verify.zygote MODE SANDBOX DEVICE FD`; DEVICE is JSON, of mode `device` a platforms.Device. Over the
control socket FD comes a job's memory limit with its socket attached, and where the debugger asks for it a file for a
log; back go the child's pid and, when it has ended, its wait status and why it was killed, if it was killed here.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from verify import confine, wire
from verify.platforms import Device

HOME_PREFIX = "enable-"  # of the directory that a zygote and its children have for themselves
MEMORY = struct.Struct("<Q")  # a job's limit in bytes, as it comes over the control socket
LOOK_SECONDS = 0.1  # between two looks at a child's memory, processes and files
BASE_BYTES = 1 << 30  # what torch and triton themselves keep resident, with room
MAX_PROCESSES = 32  # of one child; a compiler is one
DISK_BYTES = 1 << 30  # of a child's work directory; what one launch compiles to takes some 0.3 MB
MAX_FILES = 50_000

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


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


def serve(mode: str, sandbox: str, device: Device | None, control: socket.socket) -> None:
    """Fork one child per request until the parent closes the control socket."""
    from verify import child

    child.prepare(mode)
    if mode == "compile":
        _warm()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    os.umask(0o077)
    wire.send(control, {"ready": mode})
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, MEMORY.size, 2)
        if not message:
            return
        (memory_bytes,) = MEMORY.unpack(message)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        work, parent = Path(tempfile.mkdtemp(prefix="job-", dir=os.environ["HOME"])), os.getpid()
        pid = os.fork()
        if not pid:
            confine.detach(parent)
            _work(mode, sandbox, device, descriptors, work, memory_bytes)
        for descriptor in descriptors:
            os.close(descriptor)
        wire.send(control, {"pid": pid})
        status, why = await_end(pid, control, work, memory_bytes)
        remove(work)
        wire.send(control, {"status": status, "why": why})


def _warm() -> None:
    """What a process pays for its first compilation, paid before the fork: a hash of Triton, and what it imports."""
    importlib.import_module("triton.experimental.gluon")
    importlib.import_module("triton.runtime.cache").triton_key()


def _work(  # noqa: PLR0913 - one call, in a child that is to lose everything else
    mode: str, sandbox: str, device: Device | None, descriptors: list[int], work: Path, memory_bytes: int
) -> NoReturn:
    """Be a child: lose every right, show it, and answer the job's frames. descriptors: its socket and perhaps a log."""
    from verify import child, devices

    sock = socket.socket(fileno=descriptors[0])
    canary = Path(os.environ["HOME"]) / "canary"
    job, _ = wire.receive(sock)
    cache = Path(job["cache"]) if job.get("cache") else None
    confine.isolate(work, descriptors, cache, device)
    address_space = None if device else memory_bytes  # a GPU's driver reserves more than there is
    confine.limit(address_space)
    denied: list[str] = []
    if device is not None:
        job["place"] = device.place
        try:
            devices.start(device.place, work)
        except Exception as error:  # noqa: BLE001 - of a driver; the parent says it to the user
            wire.send(sock, {"denied": [], "failed": " ".join(str(error).split())[:500]})
            os._exit(1)
    if sandbox == confine.FULL:
        confine.confine(confine.PROFILES[mode], work, cache, device)
        denied = confine.observed(canary, address_space)
    wire.send(sock, {"denied": denied})
    status = 1
    try:
        child.serve(mode, sock, job, *descriptors[1:])
        status = 0
    except SystemExit as end:  # the kernel's
        status = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(status)  # taking the interpreter down would take a second


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    home, zygote = Path(os.environ["HOME"]), os.getpid()
    with suppress(wire.WireError, OSError):  # the parent may be killed, as by kill -9, while a child is at work
        mode, sandbox, told, descriptor = sys.argv[1:]
        fields = json.loads(told)
        device = Device.read(fields) if fields else None
        serve(mode, sandbox, device, socket.socket(fileno=int(descriptor)))
    if os.getpid() == zygote and home.name.startswith(HOME_PREFIX):
        remove(home)
    os._exit(0)
