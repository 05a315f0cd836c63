"""Generate programs: a kernel's text and its arguments, determined by a seed and an index alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from benchmarks.differential.blocks import BLOCKS
from benchmarks.differential.control import CONTROL
from benchmarks.differential.dtypes import BOOL, FLOATS, LOADED, UNSIGNED, Shape, Value
from benchmarks.differential.elementwise import ANY, ELEMENTWISE
from benchmarks.differential.grammar import Buffer, Grammar, Line

CLASSES: dict[str, tuple[Callable[[Grammar], Value], ...]] = {**ELEMENTWISE, **BLOCKS, **CONTROL}
MAX_OUTPUTS = 6
HEAD = """import triton
import triton.language as tl


@triton.jit
def tame(x):
    return tl.where((x > -100.0) & (x < 100.0), x, 7.0).to(x.dtype)


@triton.jit
def magnitude(x):
    return tl.where(tl.abs(x) < float("inf"), tl.abs(x), 0.0).to(x.dtype)


@triton.jit
def divisor(x):
    return tl.where((x == 0) | (x == -1), 3, x).to(x.dtype)


@triton.jit
def natural_divisor(x):
    return tl.where(x == 0, 3, x).to(x.dtype)


@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def either(a, b):
    return a | b


@triton.jit
def smaller_with_position(a, p, b, q):
    right = (b < a) | ((b == a) & (q < p))
    return tl.where(right, b, a), tl.where(right, q, p)


@triton.jit
def line(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def blend(a, b, flag: tl.constexpr):
    if flag:
        return tl.where(a > b, a, b)
    else:
        return a ^ b


@triton.jit
def ordered(a, b):
    return tl.minimum(a, b), tl.maximum(a, b)


@triton.jit
def scaled(x, scale):
    return x.to(tl.float32 if x.dtype != tl.float64 else tl.float64) * scale


"""
SPECIAL = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 1.0, -1.0]
SPECIAL += [1e-40, -1e-45, 1.5e-38, 6e-8, 3e38, -3e38, 65504.0, 65520.0, 1e-8, 1.00390625, 16777217.0, 2147483648.0]


@dataclass(frozen=True)
class Program:
    """A generated program.

    Attributes:
        index: Its number; with the seed, it determines everything else.
        kind: Key in CLASSES.
        lines: Kernel's body.
        buffers: Pointer arguments.
        grid: Program instances in x and y.
        num_warps: Warps for one program instance.
        flag: Compile-time argument FLAG.
    """

    index: int
    kind: str
    lines: tuple[Line, ...]
    buffers: tuple[Buffer, ...]
    grid: tuple[int, ...]
    num_warps: int
    flag: bool

    @property
    def name(self) -> str:
        return f"kernel_{self.index}"

    @property
    def results(self) -> tuple[Buffer, ...]:
        """Buffers that the program writes."""
        return tuple(b for b in self.buffers if b.taints is not None)

    @property
    def allowances(self) -> frozenset[str]:
        return frozenset().union(*(b.taints for b in self.results if b.taints))

    def source(self, noise: bool = False) -> str:
        """Return a module's text with the kernel; the simulator can add noise."""
        head = "from benchmarks.differential.allowances import perturb\n" * noise + HEAD
        pointers = ", ".join(f"{b.name}_ptr" for b in self.buffers)
        lines = [f"@triton.jit\ndef {self.name}({pointers}, count, one, scale, FLAG: tl.constexpr):"]
        for line in self.lines:
            lines += ["    " + line.text] + (["    " + line.noise] if noise and line.noise else [])
        return head + "\n".join(lines) + "\n"

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that are no tensors."""
        return {"count": 3, "one": 1, "scale": 0.75, "FLAG": self.flag}


def generate(seed: int, index: int) -> Program:
    """Return a program."""
    random = Random(f"{seed}:{index}")
    kind = random.choice(sorted(CLASSES))
    grid = random.choice(((1,), (1,), (2,), (3,), (4,), (2, 2)))
    g = Grammar(random, _shape(random, kind), int(np.prod(grid)))
    _begin(g, grid)
    for _ in range(random.randint(1, 3)):
        _load(g)
    for _ in range(random.randint(0, 3)):
        _produce(g, random.choice(ANY))
    for _ in range(random.randint(1, 2 if kind == "dots" else 3)):
        _produce(g, random.choice(CLASSES[kind]))
        for _ in range(random.randint(0, 2)):
            _produce(g, random.choice(ANY))
    _store(g)
    warps = random.choice((1, 2, 4, 4, 8))
    return Program(index, kind, tuple(g.lines), tuple(g.buffers), grid, warps, random.random() < 0.5)


def _shape(random: Random, kind: str) -> Shape:
    if kind == "dots":
        return random.choice(((16, 16), (16, 32), (32, 16), (32, 32), (16, 64), (64, 32)))
    if kind == "softmax" or random.random() < 0.6:
        return (random.choice((16, 32, 64, 128, 256)),)
    return random.choice(((2, 16), (4, 8), (8, 8), (8, 4), (16, 16), (4, 32), (1, 32)))


def _begin(g: Grammar, grid: tuple[int, ...]) -> None:
    """Emit the program instance's index, and the offsets for its elements."""
    g.write("pid = tl.program_id(0)" + (" * 2 + tl.program_id(1)" if len(grid) == 2 else ""))
    g.write(f"offsets = pid * {g.size} + {_range(g.shape)}")


def _range(shape: Shape) -> str:
    """Return the text for positions in a block, row by row."""
    if len(shape) == 1:
        return f"tl.arange(0, {shape[0]})"
    rows, columns = shape
    return f"tl.arange(0, {rows})[:, None] * {columns} + tl.arange(0, {columns})[None, :]"


def _load(g: Grammar) -> None:
    """Emit a load from a new input, with or without a mask."""
    dtype = g.random.choice((*LOADED, "float32", "int32"))
    flavour = g.random.choice(("tame", "whole", "wide", "special"))
    size = g.size * g.programs
    pointer = g.buffer("x", dtype, size, flavour)
    kind, raw = g.random.random(), True
    if kind < 0.6:
        text = f"tl.load({pointer} + offsets)"
    elif kind < 0.8:
        other = {"": "1", "f": g.random.choice(("0.0", "-1.5", 'float("-inf")', 'float("nan")'))}
        value = other["f"] if dtype in FLOATS else ("0" if dtype == BOOL else g.number("uint8"))
        limit = g.random.choice((size - 1, size - g.size // 2, "count", 0))
        text, raw = f"tl.load({pointer} + offsets, mask=offsets < {limit}, other={value})", dtype not in FLOATS
    else:
        text = f"tl.load({pointer} + ((offsets * {g.random.choice((3, 5, 7))} + 1) % {size}))"
    value_name = g.name()
    g.write(f"{value_name} = {text}")
    g.keep(Value(value_name, dtype, g.shape, raw=raw))


def _produce(g: Grammar, production: Callable[[Grammar], Value]) -> None:
    g.keep(production(g))


def _store(g: Grammar) -> None:
    """Emit stores for the latest values, each with an assertion about its type."""
    latest = {v.name: v for v in g.values if not v.raw}
    chosen = list(latest.values())[-MAX_OUTPUTS:] or g.values[-1:]
    for value in chosen:
        dtype = value.dtype.removeprefix("u") if value.dtype in UNSIGNED else value.dtype
        dtype = "int8" if dtype == BOOL else dtype
        elements = int(np.prod(value.shape))
        taints = value.taints if value.is_float else frozenset()
        pointer = g.buffer("out", dtype, elements * g.programs, "zeros", taints)
        g.write(f"tl.static_assert({value.name}.dtype == tl.{value.dtype})")
        offsets = f"pid * {elements} + {_range(value.shape)}" if value.shape else "pid"
        cast = ".to(tl.int8)" if value.dtype == BOOL else ""
        g.write(f"tl.store({pointer} + {offsets}, {value.name}{cast})")


def values(seed: int, index: int, position: int, buffer: Buffer) -> np.ndarray:
    """Return a buffer's initial elements: float64 for floats, int64 for integers."""
    random = np.random.default_rng([seed, index, position])
    size, is_float = buffer.size, buffer.dtype in FLOATS
    if buffer.flavour == "zeros":
        return np.zeros(size, np.float64 if is_float else np.int64)
    if buffer.dtype == BOOL:
        return random.integers(0, 2, size)
    if buffer.flavour in ("whole", "tame") and not is_float:
        return random.integers(0 if buffer.dtype in UNSIGNED else -10, 11, size)
    if buffer.flavour == "whole":
        return random.integers(-8, 9, size).astype(np.float64)
    if not is_float:
        extremes = np.array([0, 1, -1, 127, -128, 255, 32767, -32768, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 7, -3])
        wide = random.integers(-(2**63), 2**63, size)
        return random.choice(extremes, size) if buffer.flavour == "special" else wide
    tame = random.standard_normal(size) * 3
    if buffer.flavour == "wide":
        return tame * 2.0 ** random.integers(-24, 25, size)
    return (
        np.where(random.random(size) < 0.4, random.choice(SPECIAL, size), tame) if buffer.flavour == "special" else tame
    )
