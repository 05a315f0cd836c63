"""The library's kernels against ATen's, and FlagGems' where it is installed, on what a model's training step asks for.

    python -m benchmarks.kernels nanogpt --set n_layer=6 --set n_embd=384 --set n_head=6 --set block_size=256 \\
        --set bf16=true --batch 1024 --optimizer adamw-fused
    python -m benchmarks.kernels dlrm --batch 1024

Every call of one step, after a first one, is timed where it occurs, once for each signature: the device's time between
two events, median of REPEATS. Before each the L2 cache is flushed, as often as the host needs to launch the call
meanwhile. A call is launch-bound (marked *) where the host takes longer to launch the library's kernels than the GPU to
run them. limit: the time that the GPU needs at the least, to move each tensor of the call once at the bandwidth of a
large copy, or for its multiplications at the rate of a large matrix product of that dtype, both measured first; of the
library's time. Ratios are ATen's time by the library's, so that above 1 is faster, and mean the geometric mean over
signatures. FlagGems runs in a process of its own, which is started anew after the overload that ended it or that took
over --gems-each seconds, and without it. At last the whole step is timed with the library registered and without.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.flaggems import Gems, beside
from enable.library import select, use
from enable.serve.server import Server
from enable.tables import table
from enable.train import step_time
from enable.train.training_run import Recipe
from enable.tune.clock import FLUSHED, flushes_before
from generate.kernel_library import KERNELS, Library
from traces.call_keys import recorded_key
from traces.overloads import bind, kind, name_of, written
from verify.child.devices import is_lost

ROOT = Path(__file__).resolve().parent.parent

REPEATS = 15
WARM = 3
BEHIND = 0.95  # times ATen's speed: an overload below it is told with the reason
REASONS = {
    "aten::mm": "the same warps load, multiply and store; PyTorch's have warps for each",
    "aten::_scaled_dot_product_cudnn_attention": "one tile of scores at a time, no products beside exponentials",
    "aten::_scaled_dot_product_cudnn_attention_backward": "one tile of scores at a time, in two kernels",
    "aten::_foreach_norm.Scalar": "the host launches it for 64 tensors at a time",
}
# By what a kernel imports of the blocks: the first that it has.
IMPORTED = {
    "convolve": "loads by pointer for each tap, and fp32 as three products of halves; depthwise without shared loads",
    "matmul": REASONS["aten::mm"],
    "launch_matmul": REASONS["aten::mm"],
    "sort_into": "a pass for each four bits of the keys, whose writes lie apart",
    "sorted_order": "a sort by passes of four bits, and passes over what was sorted",
    "sorted_keys": "a sort by passes of four bits, and passes over what was sorted",
    "distinct_elements": "a sort by passes of four bits, and passes over what was sorted",
    "put_last": "of elements for one place the last counts: it is found by atomics of 64 bits, a launch of its own",
    "put_along": "of elements for one place the last counts: it is found by atomics of 64 bits, a launch of its own",
    "put": "the result is copied first and written after, in two launches",
    "with_index": "values are combined with an index of 64 bits each, and parts of rows by a launch of their own",
    "reduce": "a launch for parts of the rows and one for their sums",
    "scan_along": "rows cut into parts are read twice: for what each part comes to, and for its elements",
    "resample": "each element reads its whole window, and shares no loads with its neighbours",
    "resample_backward": "each element searches the results it went to, and adds their gradients in order",
    "lu_factors": "one program a matrix",
    "move_selected": "counted first, moved in another launch",
    "true_starts": "counted first, moved in another launch",
    "searched": "a binary search for each element, without shared loads",
    "search_sorted": "a binary search for each element, without shared loads",
    "arctangent_of": "bound by arithmetic: an arc tangent of its own, with a root and a division rounded exactly",
    "log1p": "bound by arithmetic: divisions are rounded exactly",
    "expm1": "bound by arithmetic: divisions are rounded exactly",
}
_FROM_BLOCKS = re.compile(r"^from blocks\.\w+ import (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """One signature. Times of the GPU in microseconds; host: of launching the library's kernels. calls: in the step."""

    overload: str
    shapes: str
    aten: float
    library: float | None
    gems: float | None
    host: float
    least: float
    calls: int = 1

    @property
    def launch_bound(self) -> bool:
        return self.library is not None and self.host > self.library


class Timer:
    """Times calls on the device, and knows what it can do at best."""

    def __init__(self, device: str) -> None:
        self.flush = torch.empty(FLUSHED, dtype=torch.uint8, device=device)
        self._rates: dict[torch.dtype, float] = {}
        self.device = device
        self.bandwidth = 0.0
        source = torch.empty(1 << 30, dtype=torch.uint8, device=device)
        target = torch.empty_like(source)
        self.bandwidth = 2 * (1 << 30) / self.gpu(lambda: target.copy_(source))  # bytes a microsecond

    def gpu(self, call: Callable[[], Any]) -> float:
        """Median time between two events, microseconds; before the first, flushes last until the host is through."""
        for _ in range(WARM):
            call()
        flushes = flushes_before(self.host(call), self.bandwidth and FLUSHED / self.bandwidth)
        events = [
            (torch.Event(self.device, enable_timing=True), torch.Event(self.device, enable_timing=True))
            for _ in range(REPEATS)
        ]
        for before, after in events:
            for _ in range(flushes):
                self.flush.zero_()
            before.record()
            call()
            after.record()
        torch.accelerator.synchronize()
        return statistics.median(1e3 * before.elapsed_time(after) for before, after in events)

    def host(self, call: Callable[[], Any]) -> float:
        """Median time until the call returns, microseconds."""
        found = []
        for _ in range(REPEATS):
            torch.accelerator.synchronize()
            started = time.perf_counter()
            call()
            found.append(1e6 * (time.perf_counter() - started))
        return statistics.median(found)

    def rate(self, dtype: torch.dtype) -> float:
        """Floating-point operations a microsecond, of a matrix product."""
        if dtype not in self._rates:
            a = torch.randn(8192, 8192, device=self.device).to(dtype)
            self._rates[dtype] = 2 * 8192**3 / self.gpu(lambda: a @ a)
        return self._rates[dtype]


class Signatures(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Visits each signature of a device's calls where it first occurs; what is to be written there is a copy."""

    def __init__(self, device: str, visit: Callable[[OpOverload, tuple[Any, ...], dict[str, Any]], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: dict[Any, int] = {}  # of calls, in the order of first occurrence
        self._device, self._visit = device, visit

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if self._asked(func, args, kwargs):
            key = recorded_key(func, args, kwargs)
            if key not in self.counts:
                copied = tree_map(_copied, (args, kwargs)) if written(func) else (args, kwargs)
                self._visit(func, *copied)
            self.counts[key] = self.counts.get(key, 0) + 1
        return func(*args, **kwargs)

    def _asked(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if kind(func, bind(func, args, kwargs)) not in ("compute", "random"):
            return False
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        here = tensors or str(kwargs.get("device", "")).startswith(self._device)
        return bool(here) and {t.device.type for t in tensors} <= {self._device}


class Timing:
    """Times the library's kernels and ATen's."""

    def __init__(self, server: Server, timer: Timer) -> None:
        self.rows: list[Row] = []
        self.failed: dict[str, str] = {}
        self._server, self._timer = server, timer

    def visit(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Add a row. Raises SystemExit where the device is of no more use."""
        timer, name = self._timer, name_of(func)
        call = lambda: func(*args, **kwargs)  # noqa: E731
        with FlopCounterMode(display=False) as counter:
            result = call()
        leaves = [t for t in tree_leaves((args, kwargs, result)) if isinstance(t, torch.Tensor)]
        moved = sum({(_place(t), t.numel()): _nbytes(t) for t in leaves}.values())
        floating = next((t.dtype for t in leaves if t.is_floating_point()), torch.float32)
        flops = counter.get_total_flops()
        least = max(moved / timer.bandwidth, flops / timer.rate(floating) if flops else 0.0)
        del result, leaves
        aten = timer.gpu(call)
        served = self._server.find(func, args, kwargs)
        library = host = None
        try:
            if served is not None:
                library, host = timer.gpu(served), timer.host(served)
        except NotImplementedError:  # it is PyTorch's to answer
            library = None
        except Exception as error:  # noqa: BLE001 - a kernel that fails is told, and the others are timed
            self.failed[name] = str(error).partition("\n")[0][:200]
            if is_lost(timer.device):
                raise SystemExit(f"{name}: {self.failed[name]}") from error
        self.rows.append(Row(name, _shapes(args), aten, library, None, host or 0.0, least))


def visited(recipe: Recipe, device: str, visit: Callable[..., None]) -> list[int]:
    """Visit what a training step asks for, after a first step. Gives the calls of each signature."""
    target, signatures = recipe.build(device), Signatures(device, visit)
    for step in range(2):
        batch = next(target.training.batches)
        with signatures if step else nullcontext():
            target.training.step(batch, lambda name: nullcontext())
    return list(signatures.counts.values())


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _place(tensor: torch.Tensor) -> int:
    return id(tensor) if tensor.is_sparse else tensor.data_ptr()


def _nbytes(tensor: torch.Tensor) -> int:
    if tensor.is_sparse:
        return _nbytes(tensor._indices()) + _nbytes(tensor._values())
    return tensor.numel() * tensor.element_size()


def _shapes(args: Iterable[Any]) -> str:
    shapes = ["x".join(map(str, t.shape)) or "0-dim" for t in tree_leaves(args) if isinstance(t, torch.Tensor)]
    return " ".join(shapes[:3]) + (f" and {len(shapes) - 3} more" if len(shapes) > 3 else "")


def mean(values: Iterable[float]) -> float | None:
    """Geometric; None of nothing."""
    found = list(values)
    return math.exp(statistics.fmean(map(math.log, found))) if found else None


def grouped(rows: list[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.overload].append(row)
    return groups


def by_overload(rows: list[Row]) -> Iterator[dict[str, Any]]:
    """A line of each overload, those first that take the most of the step."""
    ranked = sorted(grouped(rows).items(), key=lambda item: -sum(r.aten * r.calls for r in item[1]))
    for overload, group in ranked:
        ours = [r for r in group if r.library is not None]
        bound = sum(r.launch_bound for r in ours)
        yield {
            "overload": overload,
            "signatures": len(group),
            "calls": sum(r.calls for r in group),
            "ATen us": round(sum(r.aten * r.calls for r in group), 1),
            "library us": round(sum((r.library or 0) * r.calls for r in ours), 1) if ours else None,
            "vs ATen": mean(r.aten / r.library for r in ours if r.library),
            "vs FlagGems": mean(r.gems / r.library for r in ours if r.gems and r.library),
            "limit": mean(max(r.least, 1e-3) / r.library for r in ours if r.library),
            "launch-bound": f"{bound}*" if bound else "",
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--optimizer")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--alone", action="store_true", help="Leave FlagGems out.")
    parser.add_argument("--json", type=Path, help="Write every signature there.")
    parser.add_argument("--gems-seconds", type=float, default=600, help="How long FlagGems may take in all.")
    parser.add_argument("--gems-each", type=int, default=60, help="How long, for a signature; tuning is part of it.")
    parser.add_argument("--gems", type=int, metavar="N", help="Time FlagGems alone, from the Nth signature on.")
    parser.add_argument("--skip", action="append", default=[], metavar="OVERLOAD", help="With --gems: leave it out.")
    asked = parser.parse_args()
    settings = dict(text.split("=", 1) for text in asked.settings)
    recipe = Recipe(asked.model, settings, asked.batch, asked.optimizer)
    if asked.gems is not None:
        visited(recipe, asked.device, Gems(Timer(asked.device), asked).visit)
        return
    gems, failed = ({}, {}) if asked.alone else beside(sys.argv, asked.gems_seconds)
    library = select(unverified=True, device=asked.device)
    timer = Timer(asked.device)
    timing = Timing(Server(library.entries.get, asked.device), timer)
    counts = visited(recipe, asked.device, timing.visit)
    rows = [
        replace(row, calls=n, gems=gems.get((i, row.overload)))
        for i, (row, n) in enumerate(zip(timing.rows, counts, strict=True))
    ]
    if asked.json:
        asked.json.write_text(json.dumps([{**vars(row), "launch_bound": row.launch_bound} for row in rows], indent=1))
    report(rows, timer, {**timing.failed, **failed})
    del timer.flush
    torch.accelerator.empty_cache()
    step = step_time.measure(recipe, asked.device, lambda: use(asked.device, unverified=True), Library(KERNELS))
    print(
        f"  a training step: {step.library_ms:.2f} ms, ATen {step.native_ms:.2f} ms: {step.ratio:.2f} times as long; "
        f"{step.share:.1%} of the GPU's time in the library's kernels"
    )


def report(rows: list[Row], timer: Timer, failed: dict[str, str]) -> None:
    """Print the tables."""
    lines = [{k: _cell(v) for k, v in line.items()} for line in by_overload(rows)]
    print(table(lines))
    ours = [r for r in rows if r.library is not None]
    both = [r for r in ours if r.gems is not None]
    busy = [r for r in ours if not r.launch_bound]
    print(f"\n{torch.get_device_module(timer.device).get_device_name()}, torch {torch.__version__}")
    print(f"  a copy moves {timer.bandwidth / 1e6:.2f} TB/s; {len(ours)} of {len(rows)} signatures have a kernel")
    print(
        f"  geometric mean against ATen: {_cell(mean(r.aten / r.library for r in ours if r.library))} of all, "
        f"{_cell(mean(r.aten / r.library for r in busy if r.library))} of the {len(busy)} that are not launch-bound"
    )
    total, native = (sum(getattr(r, name) * r.calls for r in ours) for name in ("library", "aten"))
    print(f"  the step's calls, added up: {total / 1e3:.2f} ms, ATen {native / 1e3:.2f} ms")
    if both:
        ahead = sum(r.gems >= r.library for r in both if r.gems and r.library)
        against = mean(r.gems / r.library for r in both if r.gems and r.library)
        print(f"  against FlagGems: {_cell(against)}, ahead on {ahead} of {len(both)} signatures")
    for name, error in failed.items():
        print(f"  failed: {name}: {error}")
    for overload, ratio, why in behind(ours):
        print(f"  behind ATen: {overload}, {ratio:.2f}: {why}")


def behind(rows: list[Row]) -> Iterator[tuple[str, float, str]]:
    """Overloads that are slower than ATen's, how fast against them, and why."""
    for overload, group in grouped(rows).items():
        ratio = mean(r.aten / r.library for r in group if r.library)
        if ratio is None or ratio >= BEHIND:
            continue
        small = all(r.launch_bound for r in group)
        yield overload, ratio, "its time is that of launches, of a few microseconds" if small else reason(overload)


def reason(overload: str) -> str:
    """Why the library's kernel may be behind."""
    if overload in REASONS:
        return REASONS[overload]
    kernel = Library(KERNELS).kernel(overload)
    imports = "" if kernel is None else " ".join(_FROM_BLOCKS.findall(kernel.path.read_text()))
    return next((why for name, why in IMPORTED.items() if name in re.findall(r"\w+", imports)), "not known")


def _cell(value: Any) -> Any:
    return "-" if value is None else f"{value:.2f}" if isinstance(value, float) else value


if __name__ == "__main__":
    main()
