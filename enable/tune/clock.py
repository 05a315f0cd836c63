"""The child that times kernels: it runs them on a GPU, turn by turn, or compiles them to tell what they take of one.

    python -m enable.tune.clock FD      # the end of a socket; what goes over it are frames, verify/sandbox/wire.py

The kernels were linted and judged before. A time is the GPU's, between two events, with the L2 cache flushed before
the first, and as often as the host needs to launch the call meanwhile: what the host takes is told apart, until the
call returns. The order of the turns is rotated from round to round.
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

FLUSHED = 256 << 20  # bytes; more than any L2 cache has
COPIED = 1 << 30  # bytes, of the copy whose bandwidth is the limit
SQUARE = 8192  # of the product whose rate is the limit
MOST_FLUSHES = 50  # before a call
WARM = 3
HOST_ROUNDS = 9
DRAWN = (0, 0)  # key and counter of kernels that draw

Call = Callable[[], Any]


class Clock:
    """Times calls on one GPU."""

    def __init__(self, place: str, directory: Path) -> None:
        start(place, directory)
        self.place = torch.device(place)
        self._flush = torch.empty(FLUSHED, dtype=torch.uint8, device=self.place)
        self._told: dict[str, Any] = {}
        self._flushing = 0.0
        (flushes,) = self.rounds([self._flush.zero_], WARM)
        self._flushing = statistics.median(flushes)  # microseconds

    def rounds(self, calls: list[Call], count: int) -> list[list[float]]:
        """Microseconds of each call in each of so many rounds."""
        flushes = []
        for run in calls:
            for _ in range(WARM):
                run()
            flushes.append(flushes_before(self.host(run), self._flushing))
        taken: list[list[float]] = [[] for _ in calls]
        for number in range(count):
            events = {}
            for k in range(len(calls)):
                at = (k + number) % len(calls)
                events[at] = torch.Event(self.place, enable_timing=True), torch.Event(self.place, enable_timing=True)
                for _ in range(flushes[at]):
                    self._flush.zero_()
                events[at][0].record()
                calls[at]()
                events[at][1].record()
            torch.cuda.synchronize()
            for at, (before, after) in events.items():
                taken[at].append(round(1e3 * before.elapsed_time(after), 3))
        return taken

    def host(self, run: Call) -> float:
        """Median microseconds until a call returns."""
        found = []
        for _ in range(HOST_ROUNDS):
            torch.cuda.synchronize()
            begun = time.perf_counter()
            run()
            found.append(1e6 * (time.perf_counter() - begun))
        return round(statistics.median(found), 1)

    def device(self, dtypes: list[str]) -> dict[str, Any]:
        """What the GPU can do, measured once; the fields of TimedDevice but for `beside`."""
        if not self._told:
            small = torch.empty(1, dtype=torch.uint8, device=self.place)
            source = torch.empty(COPIED, dtype=torch.uint8, device=self.place)
            into = torch.empty_like(source)
            copy, launch = self.rounds([lambda: into.copy_(source), lambda: small.zero_()], 15)
            self._told = {
                "name": torch.cuda.get_device_name(self.place),
                "target": target(),
                "processors": torch.cuda.get_device_properties(self.place).multi_processor_count,
                "bandwidth": round(2 * COPIED / statistics.median(copy), 1),
                "launch": statistics.median(launch),
                "rates": {name: self._rate(getattr(torch, name)) for name in dtypes},
            }
        return self._told

    def _rate(self, dtype: torch.dtype) -> float:
        a = torch.randn(SQUARE, SQUARE, device=self.place).to(dtype)
        (taken,) = self.rounds([lambda: a @ a], 5)
        return round(2 * SQUARE**3 / statistics.median(taken), 1)


def flushes_before(host: float, flush: float) -> int:
    """How often the cache is flushed before a call, so that the GPU is at it for twice as long as the host launches.

    host: microseconds of that; flush: of one flush, 0.0 where it is not known, which gives 1.
    """
    return 1 + min(math.ceil(2 * host / flush), MOST_FLUSHES) if flush else 1


@contextmanager
def noted(compile_only: bool = False) -> Iterator[list[dict[str, Any]]]:
    """The launches of a call, with what the compiler says of each kernel. compile_only: nothing runs."""
    from triton.runtime.jit import JITFunction

    original, found = JITFunction.run, list[dict[str, Any]]()

    def launch(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        compiled = original(self, *args, grid=grid, warmup=warmup or compile_only, **kwargs)
        named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        programs = 1
        for n in grid(named) if callable(grid) else grid:
            programs *= int(n)
        found.append({"kernel": self.__name__, "programs": programs, **resources(compiled)})
        return compiled

    JITFunction.run = launch
    try:
        yield found
    finally:
        JITFunction.run = original


class Kernels:
    """The kernels of a request. Each shape gives every one of them arguments of its own."""

    def __init__(self, told: list[dict[str, Any]], directory: Path) -> None:
        self._told = told
        self._wrappers = []
        for number, one in enumerate(told):
            home = directory / str(number)
            home.mkdir()
            self._wrappers.append({name: self._loaded(number, name, how, home) for name, how in one.items()})

    def _loaded(self, number: int, name: str, how: dict[str, Any], home: Path) -> dict[str, Any]:
        """The wrappers by which a kernel serves one overload; its files are modules of their own."""
        prefix = f"{number}_{abs(hash(name)) % 10**8}_"
        sources = {prefix + role: text for role, text in how["sources"].items()}
        calls = {prefix + r: {o: prefix + c for o, c in of.items()} for r, of in how["calls"].items()}
        found = load_wrappers(sources, home, calls, target=target())
        return {role.removeprefix(prefix): wrapper for role, wrapper in found.items() if wrapper is not None}

    def calls(self, overload: str, packed: Packed, place: str) -> list[Call]:
        """What runs this call on each kernel."""
        return [self._call(k, overload, unpack(packed, device=place)) for k in range(len(self._told))]

    def _call(self, k: int, overload: str, arguments: dict[str, Any]) -> Call:
        how, wrappers = self._told[k][overload], self._wrappers[k][overload]
        wrapper = bound(wrappers["kernel"], DRAWN if how["draws"] else None)
        plan, takes_out, copy = Plan(**how["plan"]), how["takes_out"], wrappers.get("copy")
        return lambda: call(plan, arguments, wrapper, takes_out, copy)


def timed(
    clock: Clock, request: dict[str, Any], kernels: Kernels, shapes: Iterable[tuple[dict[str, Any], Packed]]
) -> dict[str, Any]:
    """The fields of a Measurement; the first kernel has two turns."""
    times: list[dict[str, Any]] = [{} for _ in request["kernels"]]
    again = {}
    for told, packed in shapes:
        calls = kernels.calls(told["overload"], packed, request["place"])
        facts = []
        for run in calls:
            with noted() as launches:
                run()
            facts.append(list(launches))
        other = kernels.calls(told["overload"], packed, request["place"])[0]
        *taken, second = clock.rounds([*calls, other], request["rounds"])
        for k, of in enumerate(taken):
            times[k][told["name"]] = {"gpu": of, "host": clock.host(calls[k]), "launches": facts[k]}
        again[told["name"]] = {"gpu": second, "host": 0.0, "launches": []}
        del calls, other
    return {"device": clock.device(request["dtypes"]), "times": times, "again": again}


def compiled(
    request: dict[str, Any], kernels: Kernels, shapes: Iterable[tuple[dict[str, Any], Packed]]
) -> dict[str, Any]:
    """By shape the launches of each kernel, compiled for a target; nothing runs."""
    from triton.runtime import driver

    from verify.child.compiling import CompileOnlyDriver

    driver.set_active(CompileOnlyDriver(request["target"]))
    found = []
    for told, packed in shapes:
        facts = []
        for run in kernels.calls(told["overload"], packed, "cpu"):
            with noted(compile_only=True) as launches:
                run()
            facts.append(list(launches))
        found.append(facts)
    return {"launches": found}


def main(descriptor: int) -> None:
    """Answer requests until the other end hangs up; what goes wrong is an answer, too."""
    clock: Clock | None = None
    with socket.socket(fileno=descriptor) as sock, tempfile.TemporaryDirectory() as directory, torch.no_grad():
        for number in itertools.count():
            try:
                request, _ = receive(sock)
                shapes = [(told, packed_of(*receive(sock), told["name"])) for told in request["shapes"]]
            except WireError:
                return
            try:
                define_all(request["subgraphs"])
                home = Path(directory) / str(number)
                home.mkdir()
                if request["place"] != "cpu":  # before kernels are loaded, which ask what the device is
                    clock = clock or Clock(request["place"], home)
                kernels = Kernels(request["kernels"], home)
                answer = timed(clock, request, kernels, shapes) if clock else compiled(request, kernels, shapes)
            except Exception as error:  # noqa: BLE001 - the edge of a child
                answer = {"error": f"{type(error).__name__}: {str(error).partition(chr(10))[0][:300]}"}
            send(sock, answer)


if __name__ == "__main__":
    main(int(sys.argv[1]))
