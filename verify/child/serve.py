"""What runs in a child: load a kernel file, rebuild a case's arguments, run the wrapper, send raw bytes back.

Three modes have a kernel. `execute` runs launches in Triton's interpreter, `device` on a GPU. `compile` compiles each
launch for the platform's targets and does not run it, so what it returns is what the wrapper would return if its
kernels did nothing. The child holds no reference, no tolerance and no verdict. Of mode `trial` is a child that tells
whether ATen answers a call; no kernel comes into it.
"""

from __future__ import annotations

import os
import socket
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import IO, Any, Protocol

import torch

from traces.subgraphs import define_all
from traces.values import Packed, Rebuilt, on_host, pack, unpack
from verify.child import devices
from verify.child.aiming import has_settings, name_of
from verify.child.answers import Counters, EarlierResults, complaints, protected, strided
from verify.child.compiling import patch_compiler, targets
from verify.child.far import far
from verify.child.fresh import fresh
from verify.child.global_state import GlobalState
from verify.child.guards import Printed, count_threads, notes, watch_threads, watched
from verify.child.launch_log import launch_log
from verify.child.launches import patch_texts
from verify.child.libdevice import mend_libdevice
from verify.child.loading import aim_loaded, described, load_wrappers
from verify.child.reach import patch_rewriter, reached
from verify.child.rerun import Rerun
from verify.child.simulator import patch_interpreter, simulator
from verify.child.tuning import TUNES, tuning
from verify.child.witness import witness
from verify.contract.derive import Plan, call
from verify.contract.random_state import bound
from verify.excerpts import anonymous, cut_log
from verify.platforms import COMPILE, DEVICE, EXECUTE, TRIAL
from verify.sandbox import wire

MAX_LOG = 20_000  # characters of compiler output or traceback that are sent back


def prepare(mode: str) -> None:
    """Import and patch what every job needs, once, before the first fork."""
    torch.set_num_threads(1)
    # torch.empty is filled with NaN, True or the largest integer, and where kernels run with more
    # (verify/child/fresh.py), so that a result never written is never right by luck.
    # torch.use_deterministic_algorithms also sets a flag of torch._inductor, which takes a second or two to import.
    torch._C._set_deterministic_algorithms(True, warn_only=mode == TRIAL)
    torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined]
    watch_threads()
    if mode != TRIAL:
        patch_texts()
    if mode == EXECUTE:
        mend_libdevice()
        patch_interpreter()
        patch_rewriter()
        far.reserve()
    if mode == DEVICE:
        devices.patch_launches()


class Runner(Protocol):
    """Answers the requests of one job, which it is made for: `Runner(job, mode)`.

    lost: whether the last error was one after which this process can run nothing more.
    """

    @property
    def lost(self) -> bool: ...

    def run(self, header: dict[str, Any], packed: Packed) -> tuple[dict[str, Any], Packed]:
        """Answer one request. Raises whatever went wrong; `notes` then still say what was done."""


def runner(job: dict[str, Any], mode: str) -> Runner:
    """What a child runs in which there is a kernel file: all of it, or its kernels alone."""
    return Rerun(job, mode) if job.get("rerun") else KernelRunner(job, mode)


class KernelRunner:
    """One job's wrappers, and what earlier requests leave behind for later ones to be compared with."""

    def __init__(self, job: dict[str, Any], mode: str) -> None:
        self._job = job
        self._executes, self._marked = mode != COMPILE, mode == EXECUTE
        self._place = job["place"] if mode == DEVICE else "cpu"
        self._plan = Plan(**job["plan"])
        self._wrappers: dict[str, Any] | None = None
        self._earlier = EarlierResults()
        self._packed: Packed | None = None  # the last request's
        self._memory: list[Rebuilt] = []
        self._places: list[tuple[int, int]] = []  # of this memory, as it was made
        with torch.no_grad():
            self._state = GlobalState()

    def run(self, header: dict[str, Any], packed: Packed) -> tuple[dict[str, Any], Packed]:
        """Answer one request. Raises whatever the candidate raises; `notes` then still say what it did."""
        by_target = not self._executes and has_settings(self._job["sources"].values())
        refused = self._compile_for_each(header, packed) if by_target else ""
        notes.clear(header.get("scalars"))
        notes.refused = refused
        reached.clear()
        seed = header.get("seed", 0)
        given = self._rebuild(packed, bool(header.get("reuse")))
        arguments = far.spread(given, header["far"]) if "far" in header else given
        may_not = protected(self._plan.overload, arguments)
        for tensor in strided(arguments):
            at, size = tensor.untyped_storage().data_ptr(), tensor.numel() * tensor.element_size()
            notes.spans[at] = max(notes.spans.get(at, 0), size)
        launch_log.clear(self._memory if header.get("log") else None)
        tuning.configure(header.get("configuration", 0), not self._executes or seed == TUNES)
        simulator.configure(seed, self._job.get("alignment", 1), self._memory, may_not)
        if self._executes:
            fresh.configure(zlib.crc32(b"".join(d for d in packed.data if d is not None)), seed)
        versions, before = Counters(arguments, may_not), count_threads()
        with torch.no_grad():
            try:
                witness.request()
                with watched(), redirect_stdout(Printed()):
                    result = self._call(arguments, header.get("philox"))
                    self._synchronize()
                far.gather(given, arguments)
                notes.threads = max(0, count_threads() - before)
                values = {**given, "return": result}
                answer, log = on_host(_copied(values)), launch_log.told(values) if launch_log.on else None
            finally:
                witness.answered()
                notes.globals = self._state.restore()
        notes.types += versions.moved() + complaints(self._plan.overload, arguments, result)
        buffers = {m.buffer.data_ptr() for m in self._memory}
        notes.aliases_earlier = self._earlier.shares_memory(result, buffers)
        outside = not all(m.guards_intact() for m in self._memory)
        told = {"status": "ok", "outside": outside, "reached": reached.told(), "log": log}
        return {**told, **notes.reply()}, answer

    def _compile_for_each(self, header: dict[str, Any], packed: Packed) -> str:
        """Compile what a file launches with the settings of each target, for that; the compiler's log of what it
        refused. What the request is answered with then compiles nothing: it is launched with those of the device."""
        refused = ""
        for target in targets.every:
            arguments = unpack(packed)
            notes.clear(header.get("scalars"))
            launch_log.clear(None)
            targets.now = [target]
            try:
                with torch.no_grad(), watched(), redirect_stdout(Printed()):
                    self._call(arguments, header.get("philox"), name_of(target))
            finally:
                targets.now = []
            refused = refused or notes.refused
        return refused

    def _rebuild(self, packed: Packed, reuse: bool) -> dict[str, Any]:
        last = self._packed
        same = last is not None and (packed.groups, packed.tensors) == (last.groups, last.tensors)
        if not (reuse and same and _places(self._memory) == self._places):
            self._memory = []
        arguments = unpack(packed, memory=self._memory, device=self._place)
        self._packed, self._places = packed, _places(self._memory)
        return arguments

    @property
    def lost(self) -> bool:
        """Whether the last error was one after which this process can run nothing more."""
        return self._place != "cpu" and devices.is_lost(self._place)

    def _synchronize(self) -> None:
        """Errors of a launch are told here at the latest."""
        if self._place != "cpu":
            torch.accelerator.synchronize(torch.device(self._place))

    def _call(self, arguments: dict[str, Any], philox: list[int] | None, target: str | None = None) -> Any:
        """target: whose settings are launched with, by default those of the device."""
        sources = self._job["sources"]
        if self._wrappers is None:
            directory, calls = Path(self._job["directory"]), self._job.get("calls", {})
            self._wrappers = load_wrappers(sources, directory, calls, self._marked)
        aim_loaded(sources, self._job.get("target", "") if target is None else target)
        wrapper = bound(self._wrappers["kernel"], philox)
        copy = self._wrappers["copy"]
        own = self._job.get("own_defaults", False)
        return call(self._plan, arguments, wrapper, self._job["takes_out"], copy, own)


def _places(memory: list[Rebuilt]) -> list[tuple[int, int]]:
    """Address and bytes of each buffer's storage; a program can resize it."""
    storages = [m.buffer.untyped_storage() for m in memory]
    return [(s.data_ptr(), s.nbytes()) for s in storages]


def _copied(values: dict[str, Any]) -> Packed:
    """The values as they are now: no thread that runs on can change the answer."""
    with torch._C.DisableTorchFunctionSubclass():
        packed = pack(values)
    packed.data = [None if d is None else bytes(d) for d in packed.data]
    return packed


@contextmanager
def stderr_to(file: IO[bytes]) -> Iterator[None]:
    """File descriptor 2, where compilers write their diagnostics, and ATen the warnings of operators called by name."""
    saved = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def serve(
    mode: str,
    sock: socket.socket,
    job: dict[str, Any],
    make: Callable[[dict[str, Any], str], Runner],
    log_fd: int | None = None,
) -> None:
    """Answer the frames of `job` until the parent closes the socket. log_fd: where a witness is to write, if any."""
    if mode == COMPILE:
        patch_compiler(job["targets"])
    with ExitStack() as stack:
        job["directory"] = stack.enter_context(tempfile.TemporaryDirectory())
        log = Path(job["directory"]) / "stderr.txt"
        stack.enter_context(stderr_to(stack.enter_context(log.open("wb"))))  # of MLIR and ptxas
        if log_fd is not None:
            witness.begin(log_fd, job["seconds"])
        define_all(job.get("subgraphs", []))
        runner = make(job, mode)
        while True:
            try:
                header, buffers = wire.receive(sock)
            except wire.WireError:
                return
            try:
                reply, packed = runner.run(header, wire.packed_of(header, buffers, "case"))
            except Exception as error:  # noqa: BLE001 - one case: the candidate's error is the case's outcome
                lost = runner.lost
                wire.send(sock, {**_failure(error, job["directory"], log), "lost": lost})
                if lost:
                    return
                continue
            wire.send_packed(sock, reply, packed)


def _failure(error: BaseException, directory: str, log: Path) -> dict[str, Any]:
    noted = notes.reply()
    if noted["refused"]:
        noted["refused"] = _clean(f"{noted['refused']}\n{log.read_text(errors='replace')}", directory)
    return {"status": "error", "text": _clean(described(error, directory), directory), **noted}


def _clean(text: str, directory: str) -> str:
    return cut_log(anonymous(text.replace(directory, ".")), MAX_LOG).strip()
