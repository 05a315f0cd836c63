"""Run a kernel file in a child: rebuild a case's arguments, call the wrapper, and send raw bytes back.

Three modes have a kernel. `execute` runs launches in Triton's interpreter, and `device` on a GPU. `compile`
compiles each launch for the platform's targets and does not run it, so its results are those of a wrapper whose
kernels do nothing.
The child has no reference, no tolerance and no verdict. The fourth mode, `trial`, has no kernel and checks if
ATen accepts a call.
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
from verify.child.numerics import patch_numerics
from verify.child.processors import pretend
from verify.child.reach import patch_rewriter, reached
from verify.child.rerun import Rerun
from verify.child.simulator import patch_interpreter, simulator
from verify.child.translated import patch_translation, translated
from verify.child.tuning import TUNES, tuning
from verify.child.witness import witness
from verify.contract.derive import Plan, call
from verify.contract.random_state import bound
from verify.excerpts import anonymous, cut_log
from verify.limits import ChipLimits
from verify.platforms import COMPILE, DEVICE, EXECUTE, TRIAL
from verify.sandbox import wire

MAX_LOG = 20_000  # characters of compiler output or traceback in a reply


def prepare(mode: str) -> None:
    """Import and patch the modules that every job needs, once, before the first fork."""
    torch.set_num_threads(1)
    # torch.empty is filled with NaN, True or the largest integer, and if kernels run, with mixed values
    # (verify/child/fresh.py). So a result that is never written is never right by accident.
    # torch.use_deterministic_algorithms also sets a flag in torch._inductor, whose import takes 1 to 2 s.
    torch._C._set_deterministic_algorithms(True, warn_only=mode == TRIAL)
    torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined]
    watch_threads()
    if mode != TRIAL:
        patch_texts()
    if mode in (COMPILE, EXECUTE):
        pretend()
    if mode == EXECUTE:
        mend_libdevice()
        patch_interpreter()
        patch_rewriter()
        far.reserve()
    if mode == DEVICE:
        devices.patch_launches()


class Runner(Protocol):
    """Object that answers the requests of one job; it is created by `Runner(job, mode)`.

    `lost` is True if the last error has made this process unusable.
    """

    @property
    def lost(self) -> bool: ...

    def run(self, header: dict[str, Any], packed: Packed) -> tuple[dict[str, Any], Packed]:
        """Answer one request and return the reply and the packed result.

        Any error propagates; `notes` then still have the observations so far.
        """


def runner(job: dict[str, Any], mode: str) -> Runner:
    """Return the runner for a job with a kernel file: the complete file, or its kernels alone."""
    return Rerun(job, mode) if job.get("rerun") else KernelRunner(job, mode)


class KernelRunner:
    """Wrappers of one job, and the state of earlier requests with which later ones are compared."""

    def __init__(self, job: dict[str, Any], mode: str) -> None:
        self._job = job
        self._executes, self._marked = mode != COMPILE, mode == EXECUTE
        self._device = job["place"] if mode == DEVICE else "cpu"
        self._plan = Plan(**job["plan"])
        self._wrappers: dict[str, Any] | None = None
        self._earlier = EarlierResults()
        self._packed: Packed | None = None  # arguments of the last request
        self._memory: list[Rebuilt] = []
        self._places: list[tuple[int, int]] = []  # address and size of each buffer when it was created
        with torch.no_grad():
            self._state = GlobalState()

    def run(self, header: dict[str, Any], packed: Packed) -> tuple[dict[str, Any], Packed]:
        """Answer one request and return the reply and the packed result.

        The candidate's errors propagate; `notes` then still have the observations so far.
        """
        translated.ask(self._job.get("marks", ()) if not self._executes else ())
        by_target = not self._executes and has_settings(self._job["sources"].values())
        refused = self._compile_for_each(header, packed) if by_target else ""
        notes.clear(header.get("scalars"))
        notes.refused = refused
        reached.clear()
        seed = header.get("seed", 0)
        originals = self._rebuild(packed, bool(header.get("reuse")))
        arguments = far.spread(originals, *header["far"]) if "far" in header else originals
        read_only = protected(self._plan.overload, arguments)
        for tensor in strided(arguments):
            at, size = tensor.untyped_storage().data_ptr(), tensor.numel() * tensor.element_size()
            notes.spans[at] = max(notes.spans.get(at, 0), size)
        launch_log.clear(self._memory if header.get("log") else None)
        tuning.configure(header.get("configuration", 0), not self._executes or seed == TUNES)
        simulator.configure(seed, self._job.get("alignment", 1), self._memory, read_only, "hardware" in header)
        if self._executes:
            fresh.configure(zlib.crc32(b"".join(d for d in packed.data if d is not None)), seed)
        versions, before = Counters(arguments, read_only), count_threads()
        with torch.no_grad():
            try:
                witness.request()
                with watched(), redirect_stdout(Printed()):
                    result = self._call(arguments, header.get("philox"))
                    self._synchronize()
                far.gather(originals, arguments)
                notes.threads = max(0, count_threads() - before)
                values = {**originals, "return": result}
                answer, log = on_host(_copied(values)), launch_log.report(values) if launch_log.on else None
            finally:
                witness.answered()
                notes.globals = self._state.restore()
        notes.types += versions.moved() + complaints(self._plan.overload, arguments, result)
        buffers = {m.buffer.data_ptr() for m in self._memory}
        notes.aliases_earlier = self._earlier.shares_memory(result, buffers)
        outside = not all(m.guards_intact() for m in self._memory)
        reply = {"status": "ok", "outside": outside, "reached": reached.encoded(), "log": log}
        return {**reply, **notes.reply()}, answer

    def _compile_for_each(self, header: dict[str, Any], packed: Packed) -> str:
        """Compile the launches with the settings for each target, and return the log of a refused launch.

        The request itself then compiles nothing; it launches with the settings for the device.
        """
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
        previous = self._packed
        same = previous is not None and (packed.groups, packed.tensors) == (previous.groups, previous.tensors)
        if not (reuse and same and _places(self._memory) == self._places):
            self._memory = []
        arguments = unpack(packed, memory=self._memory, device=self._device)
        self._packed, self._places = packed, _places(self._memory)
        return arguments

    @property
    def lost(self) -> bool:
        """Return True if the last error has made this process unusable."""
        return self._device != "cpu" and devices.is_lost(self._device)

    def _synchronize(self) -> None:
        """Wait for the device, so that pending launch errors are raised here at the latest."""
        if self._device != "cpu":
            torch.accelerator.synchronize(torch.device(self._device))

    def _call(self, arguments: dict[str, Any], philox: list[int] | None, target: str | None = None) -> Any:
        """Call the wrapper; `target` selects its settings, by default those for the device."""
        sources = self._job["sources"]
        if self._wrappers is None:
            directory, calls = Path(self._job["directory"]), self._job.get("calls", {})
            self._wrappers = load_wrappers(sources, directory, calls, self._marked)
        aim_loaded(sources, self._job.get("target", "") if target is None else target)
        wrapper = bound(self._wrappers["kernel"], philox)
        copy = self._wrappers["copy"]
        own_defaults = self._job.get("own_defaults", False)
        return call(self._plan, arguments, wrapper, self._job["takes_out"], copy, own_defaults)


def _places(memory: list[Rebuilt]) -> list[tuple[int, int]]:
    """Return address and bytes of each buffer's storage; a program can resize it."""
    storages = [m.buffer.untyped_storage() for m in memory]
    return [(s.data_ptr(), s.nbytes()) for s in storages]


def _copied(values: dict[str, Any]) -> Packed:
    """Pack copies of the values, so that a thread that is still running cannot change the answer."""
    with torch._C.DisableTorchFunctionSubclass():
        packed = pack(values)
    packed.data = [None if d is None else bytes(d) for d in packed.data]
    return packed


@contextmanager
def stderr_to(file: IO[bytes]) -> Iterator[None]:
    """Redirect file descriptor 2, to which compilers write diagnostics and ATen writes warnings."""
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
    """Answer the frames of `job` until the parent closes the socket; a witness writes to `log_fd`, if given."""
    limits = ChipLimits().changed(job.get("limits", {}))
    if mode == COMPILE:
        patch_compiler(job["targets"], limits)
        if job.get("marks"):
            patch_translation()
    if mode == EXECUTE:  # also in the child of the layer `rerun`
        patch_numerics(limits, {target["backend"] for target in job["targets"]})
    with ExitStack() as stack:
        job["directory"] = stack.enter_context(tempfile.TemporaryDirectory())
        log = Path(job["directory"]) / "stderr.txt"
        stack.enter_context(stderr_to(stack.enter_context(log.open("wb"))))  # output of MLIR and ptxas
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
            except Exception as error:  # noqa: BLE001 - the candidate's error is the outcome of this case
                lost = runner.lost
                wire.send(sock, {**_failure(error, job["directory"], log), "lost": lost})
                if lost:
                    return
                continue
            wire.send_packed(sock, reply, packed)


def _failure(error: BaseException, directory: str, log: Path) -> dict[str, Any]:
    notes_so_far = notes.reply()
    if notes_so_far["refused"]:
        notes_so_far["refused"] = _clean(f"{notes_so_far['refused']}\n{log.read_text(errors='replace')}", directory)
    return {"status": "error", "text": _clean(described(error, directory), directory), **notes_so_far}


def _clean(text: str, directory: str) -> str:
    return cut_log(anonymous(text.replace(directory, ".")), MAX_LOG).strip()
