"""Fork processes that have already imported torch and triton, in 0.1 s instead of 2.5 s.

`python -m verify.child.zygote FD` is the nursery, which imports torch. Its socket receives requests for zygotes:
JSON with a control socket attached. For each mode and runner, the nursery forks a process that imports their
modules. That process forks a zygote for each request, and a zygote forks one child per job.
A zygote's control socket receives a job's memory limit with the job's socket attached and, for the debugger, a
log file. It sends back the child's pid. After the child has ended, it sends the wait status and the reason if the
child was killed here.
A request has these fields: `mode`; `runner`, the class that answers a job's requests, as `module:name`;
`sandbox`; `device`, a platforms.Device in mode `device`; and `home`, the zygote's directory. A request without a
socket only starts the process for its mode and runner.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from verify.platforms import COMPILE, EXECUTE, Device
from verify.sandbox import confine, wire
from verify.sandbox.processes import HOME_PREFIX, MEMORY, await_end, remove

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def nurse(control: socket.socket) -> None:
    """Run the nursery until the parent closes the socket."""
    gc.disable()  # until imports are done: they create no garbage, and collection would cost one tenth of the time
    processes: dict[tuple[str, str], socket.socket] = {}
    for request, descriptor in _requests(control):
        key = request["mode"], request["runner"]
        descriptors = [] if descriptor is None else [descriptor]
        for _ in range(2):  # retry once if the process for that mode was lost
            if key not in processes:
                processes[key], theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    _forked(lambda: _prepared(*key, theirs), [control, *processes.values()], descriptors)  # noqa: B023
            with suppress(OSError):
                if descriptors:
                    socket.send_fds(processes[key], [json.dumps(request).encode()], descriptors)
                break
            processes.pop(key).close()
        for number in descriptors:
            os.close(number)


def _prepared(mode: str, runner: str, control: socket.socket) -> None:
    """Run the process for one mode: import its modules, then fork a zygote for each request."""
    from verify.child import serve

    Path("/proc/self/comm").write_text(f"enable {mode}")  # shown in lists of processes
    os.environ["TRITON_INTERPRET"] = "1" if mode == EXECUTE else "0"
    serve.prepare(mode)
    make = pkgutil.resolve_name(runner)
    _warm(mode)
    gc.freeze()  # existing objects are never garbage, and their pages stay shared
    gc.enable()
    for request, descriptor in _requests(control):
        assert descriptor is not None
        with socket.socket(fileno=descriptor) as sock:
            _forked(lambda: _zygote(request, make, sock), [control])  # noqa: B023


def _requests(control: socket.socket) -> Iterator[tuple[dict[str, Any], int | None]]:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forked processes are reaped automatically
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 1)
        if not message:
            return
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        yield json.loads(message), descriptors[0] if descriptors else None


def _forked(work: Callable[[], None], sockets: Iterable[socket.socket], descriptors: Iterable[int] = ()) -> None:
    """Run `work` in a fork that first closes the given sockets and descriptors, and exits afterwards.

    An exception ends the fork with a traceback on stderr, whose last line the parent reports.
    """
    if os.fork():
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for sock in sockets:
        sock.close()
    for descriptor in descriptors:
        os.close(descriptor)
    # the parent may be killed, for example by kill -9, while a child is at work
    with suppress(wire.WireError, OSError):
        work()
    os._exit(0)


def _zygote(request: dict[str, Any], make: Callable[[dict[str, Any], str], Any], control: socket.socket) -> None:
    """Run a zygote in its own home directory."""
    os.environ.update(
        HOME=request["home"], TMPDIR=request["home"], TRITON_CACHE_DIR=str(Path(request["home"]) / "triton")
    )
    tempfile.tempdir = None
    os.chdir(request["home"])
    zygote = os.getpid()
    try:
        device = Device.read(request["device"]) if request["device"] else None
        serve(request["mode"], request["sandbox"], device, make, control)
    finally:
        if os.getpid() == zygote:
            _remove_home()


def _remove_home() -> None:
    home = Path(os.environ["HOME"])
    if home.name.startswith(HOME_PREFIX):
        remove(home)


def serve(
    mode: str, sandbox: str, device: Device | None, make: Callable[[dict[str, Any], str], Any], control: socket.socket
) -> None:
    """Fork one child per request until the parent closes the control socket."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    os.umask(0o077)
    wire.send(control, {"ready": mode, "pid": os.getpid()})
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
            _work(mode, sandbox, device, make, descriptors, work, memory_bytes)
        for descriptor in descriptors:
            os.close(descriptor)
        wire.send(control, {"pid": pid})
        status, why = await_end(pid, control, work, memory_bytes)
        remove(work)
        wire.send(control, {"status": status, "why": why})


def _warm(mode: str) -> None:
    """Do the one-time work of a first launch before the fork: Triton's hash of itself, and its imports."""
    if mode in (COMPILE, EXECUTE):
        importlib.import_module("numpy.ctypeslib")
        importlib.import_module("triton.experimental.gluon")
    if mode == COMPILE:
        importlib.import_module("triton.runtime.cache").triton_key()


def _work(  # noqa: PLR0913 - one call, in a child that is to lose everything else
    mode: str,
    sandbox: str,
    device: Device | None,
    make: Callable[[dict[str, Any], str], Any],
    descriptors: list[int],
    work: Path,
    memory_bytes: int,
) -> NoReturn:
    """Run a child: drop all rights, prove it, and answer the job's frames.

    `descriptors` has its socket and, optionally, a log.
    """
    from verify.child import devices, serve

    sock = socket.socket(fileno=descriptors[0])
    canary = Path(os.environ["HOME"]) / "canary"
    job, _ = wire.receive(sock)
    cache = Path(job["cache"]) if job.get("cache") else None
    confine.isolate(work, descriptors, cache, device)
    address_space = None if device else memory_bytes  # a GPU driver reserves more address space than the limit
    confine.limit(address_space)
    denied: list[str] = []
    if device is not None:
        job["place"] = device.place
        try:
            devices.start(device.place, work)
        except Exception as error:  # noqa: BLE001 - a driver's error; the parent reports it to the user
            wire.send(sock, {"denied": [], "failed": " ".join(str(error).split())[:500]})
            os._exit(1)
    if sandbox == confine.FULL:
        confine.confine(confine.PROFILES[mode], work, cache, device)
        denied = confine.observed(canary, address_space)
    wire.send(sock, {"denied": denied})
    status = 1
    try:
        serve.serve(mode, sock, job, make, *descriptors[1:])
        status = 0
    except SystemExit as end:  # raised by the kernel
        status = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(status)  # an orderly exit of the interpreter would take a second


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    with suppress(OSError):
        nurse(socket.socket(fileno=int(sys.argv[1])))
    _remove_home()
    os._exit(0)
