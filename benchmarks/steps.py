"""A training step in every way there is, side by side in one run: how many times as long as PyTorch's own takes.

    python -m benchmarks.steps nanogpt --batch 64 --set n_layer=6 --set n_embd=384 --set n_head=6 \\
        --set block_size=256 --set bf16=true --optimizer adamw-fused

Ways: eager (PyTorch's own kernels), library (registered; calls that were seen before are launched natively), python
(registered, without the native way), compile (torch.compile by its own compiler), backend (torch.compile with the
library's), fused (the same, with a kernel of its own for each subgraph that has one), backend-graphs (as backend,
launched as CUDA graphs). Each trains anew from the same start; the ways take turns for ROUNDS rounds, so that what
drifts drifts for all. Times are medians of the steps of all rounds, each waited for, in milliseconds; first is the
first step, with all that it compiles.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from capture.targets import CaptureTarget
from enable import library
from enable.backend import enablekit
from enable.tables import table
from enable.train.training_run import Recipe

ROUNDS, STEPS, WARM = 3, 10, 3


@contextmanager
def registered(native: bool) -> Iterator[None]:
    """The library's kernels under ATen."""
    with library.use("cuda", unverified=True, native=native):
        yield


def compiled(**options: Any) -> Callable[[CaptureTarget], None]:
    """Has the model compiled when it is first called."""

    def prepare(target: CaptureTarget) -> None:
        assert target.training.model is not None, "a model that torch.compile can take"
        target.training.model.compile(**options)

    return prepare


WAYS: dict[str, tuple[Callable[[], AbstractContextManager[Any]], Callable[[CaptureTarget], None]]] = {
    "eager": (nullcontext, lambda target: None),
    "library": (lambda: registered(native=True), lambda target: None),
    "python": (lambda: registered(native=False), lambda target: None),
    "compile": (nullcontext, compiled()),
    "backend": (lambda: registered(native=True), compiled(backend=enablekit, options={"unverified": True})),
    "fused": (
        lambda: registered(native=True),
        compiled(backend=enablekit, options={"unverified": True, "fused": True}),
    ),
    "backend-graphs": (
        lambda: registered(native=True),
        compiled(backend=enablekit, options={"unverified": True, "cuda_graphs": True}),
    ),
}


class Way:
    """One way's training, which goes on where it stopped."""

    def __init__(self, name: str, recipe: Recipe) -> None:
        self.around, prepare = WAYS[name]
        self.times: list[float] = []
        self.target = recipe.build("cuda")
        prepare(self.target)
        with self.around():
            self.first = self._step()
            self._warm()

    def round(self) -> None:
        """Time STEPS steps."""
        with self.around():
            self._warm()
            self.times += [self._step() for _ in range(STEPS)]

    def _warm(self) -> None:
        for _ in range(WARM):
            self._step()

    def _step(self) -> float:
        batch = next(self.target.training.batches, None)
        torch.cuda.synchronize()
        started = time.perf_counter()
        self.target.training.step(batch, lambda name: nullcontext())
        torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - started)


def main() -> None:
    """Print a row for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--optimizer")
    parser.add_argument("--ways", default=",".join(WAYS), help="which, eager first")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    recipe = Recipe(asked.model, dict(pair.split("=", 1) for pair in asked.set), asked.batch, asked.optimizer)
    names = asked.ways.split(",")
    if unknown := [name for name in names if name not in WAYS]:
        parser.error(f"no way {unknown[0]!r}; choose from {', '.join(WAYS)}")
    if not torch.cuda.is_available():
        parser.error("PyTorch sees no CUDA device: launches are compared on a GPU alone")
    ways = {name: Way(name, recipe) for name in names}
    for _ in range(ROUNDS):
        for way in ways.values():
            way.round()
    medians = {name: statistics.median(way.times) for name, way in ways.items()}
    base = medians[names[0]]
    rows = [
        {
            "way": name,
            "step": round(medians[name], 3),
            "least": round(min(way.times), 3),
            "most": round(max(way.times), 3),
            "times": round(medians[name] / base, 3),
            "first": round(way.first, 1),
        }
        for name, way in ways.items()
    ]
    machine = f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    print(json.dumps({"model": recipe.words(), "machine": machine, "ways": rows}) if asked.json else table(rows))
    if not asked.json:
        print(f"  milliseconds, medians of {ROUNDS * STEPS}; {machine}")


if __name__ == "__main__":
    main()
