"""Child process that times kernels on a GPU in turns, or compiles them to report their resources.

    python -m enable.tune.clock FD      # a socket's file descriptor; frames as in verify/sandbox/wire.py

The kernels were linted and judged before. A time is GPU time between two events. Before the first event the L2 cache is
flushed, often enough to cover the host's launch of the call. The host's time until the call returns is reported
separately. The order of the turns rotates from round to round.
"""

from __future__ import annotations

import itertools
import math
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from enable.tune.resources import resources
from traces.subgraphs import define_all
from traces.values import Packed, unpack
from verify.child.aiming import target
from verify.child.devices import start
from verify.child.loading import load_wrappers
from verify.contract.derive import Plan, call
from verify.contract.random_state import bound
from verify.sandbox.wire import WireError, packed_of, receive, send

FLUSHED = 256 << 20  # bytes; larger than any L2 cache
COPIED = 1 << 30  # bytes; size of the copy that measures the bandwidth limit
SQUARE = 8192  # rows and columns of the product that measures the FLOP rate limit
MOST_FLUSHES = 50  # limit of the additional flushes before a call
WARM = 3
HOST_ROUNDS = 9
DRAWN = (0, 0)  # Philox key and counter for kernels that draw random numbers

Call = Callable[[], Any]


class Clock:
    """Times calls on one GPU."""

    def __init__(self, device_name: str, directory: Path) -> None:
        start(device_name, directory)
        self.gpu = torch.device(device_name)
        self._flush = torch.empty(FLUSHED, dtype=torch.uint8, device=self.gpu)
        self._limits: dict[str, Any] = {}
        self._flushing = 0.0
        (flushes,) = self.rounds([self._flush.zero_], WARM)
        self._flushing = statistics.median(flushes)  # microseconds per flush

    def rounds(self, calls: list[Call], count: int) -> list[list[float]]:
        """Return the microseconds that each call takes in each of `count` rounds."""
        flushes = []
        for run in calls:
            for _ in range(WARM):
                run()
            flushes.append(flushes_before(self.host(run), self._flushing))
        times: list[list[float]] = [[] for _ in calls]
        for number in range(count):
            events = {}
            for k in range(len(calls)):
                index = (k + number) % len(calls)
                events[index] = torch.Event(self.gpu, enable_timing=True), torch.Event(self.gpu, enable_timing=True)
                for _ in range(flushes[index]):
                    self._flush.zero_()
                events[index][0].record()
                calls[index]()
                events[index][1].record()
            torch.cuda.synchronize()
            for index, (before, after) in events.items():
                times[index].append(round(1e3 * before.elapsed_time(after), 3))
        return times

    def host(self, run: Call) -> float:
        """Return the median microseconds until a call returns on the host."""
        times = []
        for _ in range(HOST_ROUNDS):
            torch.cuda.synchronize()
            started = time.perf_counter()
            run()
            times.append(1e6 * (time.perf_counter() - started))
        return round(statistics.median(times), 1)

    def device(self, dtypes: list[str]) -> dict[str, Any]:
        """Measure the GPU's limits once and return the fields of TimedDevice, except `beside`.

        The bandwidth is in bytes per microsecond and the rates are in FLOP per microsecond.
        """
        if not self._limits:
            small = torch.empty(1, dtype=torch.uint8, device=self.gpu)
            source = torch.empty(COPIED, dtype=torch.uint8, device=self.gpu)
            destination = torch.empty_like(source)
            copy, launch = self.rounds([lambda: destination.copy_(source), lambda: small.zero_()], 15)
            self._limits = {
                "name": torch.cuda.get_device_name(self.gpu),
                "target": target(),
                "processors": torch.cuda.get_device_properties(self.gpu).multi_processor_count,
                "bandwidth": round(2 * COPIED / statistics.median(copy), 1),
                "launch": statistics.median(launch),
                "rates": {name: self._rate(getattr(torch, name)) for name in dtypes},
            }
        return self._limits

    def _rate(self, dtype: torch.dtype) -> float:
        """Return the matmul rate for a dtype in FLOP per microsecond."""
        a = torch.randn(SQUARE, SQUARE, device=self.gpu).to(dtype)
        (times,) = self.rounds([lambda: a @ a], 5)
        return round(2 * SQUARE**3 / statistics.median(times), 1)


def flushes_before(host: float, flush: float) -> int:
    """Return how often to flush the cache before a call, so that the GPU is busy for twice the host's launch time.

    Args:
        host: Microseconds that the host needs to launch the call.
        flush: Microseconds of one flush; 0.0 if it is unknown, which gives 1.
    """
    return 1 + min(math.ceil(2 * host / flush), MOST_FLUSHES) if flush else 1


@contextmanager
def noted(compile_only: bool = False) -> Iterator[list[dict[str, Any]]]:
    """Record the launches inside the block, with the compiler's report on each kernel.

    If `compile_only` is set, nothing runs.
    """
    from triton.runtime.jit import JITFunction

    original, launches = JITFunction.run, list[dict[str, Any]]()

    def launch(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        compiled = original(self, *args, grid=grid, warmup=warmup or compile_only, **kwargs)
        named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        programs = 1
        for n in grid(named) if callable(grid) else grid:
            programs *= int(n)
        launches.append({"kernel": self.__name__, "programs": programs, **resources(compiled)})
        return compiled

    JITFunction.run = launch
    try:
        yield launches
    finally:
        JITFunction.run = original


class Kernels:
    """The kernels of a request; for each shape every kernel gets arguments of its own."""

    def __init__(self, entries: list[dict[str, Any]], directory: Path) -> None:
        self._entries = entries
        self._wrappers = []
        for number, overloads in enumerate(entries):
            home = directory / str(number)
            home.mkdir()
            self._wrappers.append({name: self._loaded(number, name, how, home) for name, how in overloads.items()})

    def _loaded(self, number: int, name: str, how: dict[str, Any], home: Path) -> dict[str, Any]:
        """Load a kernel's wrappers for one overload; its files become separate modules."""
        prefix = f"{number}_{abs(hash(name)) % 10**8}_"
        sources = {prefix + role: text for role, text in how["sources"].items()}
        calls = {prefix + r: {o: prefix + c for o, c in of.items()} for r, of in how["calls"].items()}
        wrappers = load_wrappers(sources, home, calls, target=target())
        return {role.removeprefix(prefix): wrapper for role, wrapper in wrappers.items() if wrapper is not None}

    def calls(self, overload: str, packed: Packed, device: str) -> list[Call]:
        """Return for each kernel a function that runs this call."""
        return [self._call(k, overload, unpack(packed, device=device)) for k in range(len(self._entries))]

    def _call(self, k: int, overload: str, arguments: dict[str, Any]) -> Call:
        """Return a function that runs the call on kernel number `k`."""
        how, wrappers = self._entries[k][overload], self._wrappers[k][overload]
        wrapper = bound(wrappers["kernel"], DRAWN if how["draws"] else None)
        plan, takes_out, copy = Plan(**how["plan"]), how["takes_out"], wrappers.get("copy")
        return lambda: call(plan, arguments, wrapper, takes_out, copy)


def timed(
    clock: Clock, request: dict[str, Any], kernels: Kernels, shapes: Iterable[tuple[dict[str, Any], Packed]]
) -> dict[str, Any]:
    """Return the fields of a Measurement. The first kernel has two turns, which shows the noise."""
    times: list[dict[str, Any]] = [{} for _ in request["kernels"]]
    second_times = {}
    for shape, packed in shapes:
        calls = kernels.calls(shape["overload"], packed, request["place"])
        facts = []
        for run in calls:
            with noted() as launches:
                run()
            facts.append(list(launches))
        repeated = kernels.calls(shape["overload"], packed, request["place"])[0]
        *times_by_kernel, second = clock.rounds([*calls, repeated], request["rounds"])
        for k, microseconds in enumerate(times_by_kernel):
            times[k][shape["name"]] = {"gpu": microseconds, "host": clock.host(calls[k]), "launches": facts[k]}
        second_times[shape["name"]] = {"gpu": second, "host": 0.0, "launches": []}
        del calls, repeated
    return {"device": clock.device(request["dtypes"]), "times": times, "again": second_times}


def compiled(
    request: dict[str, Any], kernels: Kernels, shapes: Iterable[tuple[dict[str, Any], Packed]]
) -> dict[str, Any]:
    """Compile each kernel for a target and return its launches by shape; nothing runs."""
    from triton.runtime import driver

    from verify.child.compiling import CompileOnlyDriver

    driver.set_active(CompileOnlyDriver(request["target"]))
    launches_by_shape = []
    for shape, packed in shapes:
        launches_by_kernel = []
        for run in kernels.calls(shape["overload"], packed, "cpu"):
            with noted(compile_only=True) as launches:
                run()
            launches_by_kernel.append(list(launches))
        launches_by_shape.append(launches_by_kernel)
    return {"launches": launches_by_shape}


def main(descriptor: int) -> None:
    """Answer requests until the other end hangs up; an error is sent as an answer."""
    clock: Clock | None = None
    with socket.socket(fileno=descriptor) as sock, tempfile.TemporaryDirectory() as directory, torch.no_grad():
        for number in itertools.count():
            try:
                request, _ = receive(sock)
                shapes = [(shape, packed_of(*receive(sock), shape["name"])) for shape in request["shapes"]]
            except WireError:
                return
            try:
                define_all(request["subgraphs"])
                home = Path(directory) / str(number)
                home.mkdir()
                if request["place"] != "cpu":  # before kernels are loaded, because they query the device
                    clock = clock or Clock(request["place"], home)
                kernels = Kernels(request["kernels"], home)
                answer = timed(clock, request, kernels, shapes) if clock else compiled(request, kernels, shapes)
            except Exception as error:  # noqa: BLE001 - any error becomes the child's answer
                answer = {"error": f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}"}
            send(sock, answer)


if __name__ == "__main__":
    main(int(sys.argv[1]))
