"""Processes that have torch and triton imported and fork: 0.1 s instead of 2.5 s.

`python -m verify.child.zygote FD` is the nursery: it imports torch. Over its socket come requests for zygotes, JSON
with a control socket attached. For each mode and runner it forks a process that imports what these need, and which
forks a zygote for each request. A zygote forks one child per job. Over its control socket comes a job's memory limit
with its socket attached, and where the debugger asks for it a file for a log; back go the child's pid and, when it has
ended, its wait status and why it was killed, if it was killed here.

A request has `mode`; `runner`, where to import what answers a job's requests, `module:name`; `sandbox`; `device`, of
mode `device` a platforms.Device; and `home`, the zygote's directory. Of one without a socket only the process of its
mode and runner starts.
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
    """Be the nursery until the parent closes the socket."""
    gc.disable()  # until all is imported: of that nothing is garbage, and to look costs a tenth of the time
    of_mode: dict[tuple[str, str], socket.socket] = {}
    for told, descriptor in _requests(control):
        key = told["mode"], told["runner"]
        given = [] if descriptor is None else [descriptor]
        for _ in range(2):  # once more where the process of that mode was lost
            if key not in of_mode:
                of_mode[key], theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    _forked(lambda: _prepared(*key, theirs), [control, *of_mode.values()], given)  # noqa: B023
            with suppress(OSError):
                if given:
                    socket.send_fds(of_mode[key], [json.dumps(told).encode()], given)
                break
            of_mode.pop(key).close()
        for each in given:
            os.close(each)


def _prepared(mode: str, runner: str, control: socket.socket) -> None:
    """Be the process of one mode: import what it needs, then fork a zygote for each request."""
    from verify.child import serve

    Path("/proc/self/comm").write_text(f"enable {mode}")  # for who looks at the processes
    os.environ["TRITON_INTERPRET"] = "1" if mode == EXECUTE else "0"
    serve.prepare(mode)
    make = pkgutil.resolve_name(runner)
    _warm(mode)
    gc.freeze()  # what is here now is never garbage, and stays shared
    gc.enable()
    for told, descriptor in _requests(control):
        assert descriptor is not None
        with socket.socket(fileno=descriptor) as own:
            _forked(lambda: _zygote(told, make, own), [control])  # noqa: B023


def _requests(control: socket.socket) -> Iterator[tuple[dict[str, Any], int | None]]:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # what was forked ends without being waited for
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1 << 16, 1)
        if not message:
            return
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        yield json.loads(message), descriptors[0] if descriptors else None


def _forked(work: Callable[[], None], sockets: Iterable[socket.socket], descriptors: Iterable[int] = ()) -> None:
    """Do it in a fork, which closes these first and ends with it. What it raises ends it with a traceback on stderr,
    whose last line the parent tells."""
    if os.fork():
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for sock in sockets:
        sock.close()
    for descriptor in descriptors:
        os.close(descriptor)
    with suppress(wire.WireError, OSError):  # the parent may be killed, as by kill -9, while a child is at work
        work()
    os._exit(0)


def _zygote(told: dict[str, Any], make: Callable[[dict[str, Any], str], Any], control: socket.socket) -> None:
    """Be a zygote in a home of its own."""
    os.environ.update(HOME=told["home"], TMPDIR=told["home"], TRITON_CACHE_DIR=str(Path(told["home"]) / "triton"))
    tempfile.tempdir = None
    os.chdir(told["home"])
    zygote = os.getpid()
    try:
        device = Device.read(told["device"]) if told["device"] else None
        serve(told["mode"], told["sandbox"], device, make, control)
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
    """What a process pays for its first launch, paid before the fork: a hash of Triton, and what it imports."""
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
    """Be a child: lose every right, show it, and answer the job's frames. descriptors: its socket and perhaps a log."""
    from verify.child import devices, serve

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
        serve.serve(mode, sock, job, make, *descriptors[1:])
        status = 0
    except SystemExit as end:  # the kernel's
        status = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(status)  # taking the interpreter down would take a second


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    with suppress(OSError):
        nurse(socket.socket(fileno=int(sys.argv[1])))
    _remove_home()
    os._exit(0)
