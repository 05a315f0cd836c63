"""A program while it is generated: its variables, its lines, and the rules that keep it defined.

Only exact values (`Value.exact`) may decide anything that is not continuous: comparisons, casts to integers, indices.
Everything that Triton leaves undefined is avoided: quotients by zero, casts that an integer cannot hold, shifts past
the width, lanes without a value, and results that depend on how atomics are ordered.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.differential.dtypes import BITS, BOOL, FLOATS, NUMBERS, SIGN_OF_ZERO, UNSIGNED, Shape, Value


@dataclass(frozen=True)
class Line:
    """A kernel's line, and the line that adds noise after it, if any."""

    text: str
    noise: str = ""


@dataclass(frozen=True)
class Buffer:
    """A pointer argument.

    Attributes:
        name: Parameter.
        dtype: Element type.
        size: Elements.
        flavour: How values are drawn (programs.py); "zeros" for a result.
        taints: Allowances that a result has; None for an input.
    """

    name: str
    dtype: str
    size: int
    flavour: str
    taints: frozenset[str] | None = None


class Grammar:
    """A program under construction; productions append to it."""

    def __init__(self, random: Random, shape: Shape, programs: int) -> None:
        self.random, self.shape, self.programs = random, shape, programs
        self.lines: list[Line] = []
        self.values: list[Value] = []
        self.buffers: list[Buffer] = []
        self.indent = 0
        self._names = 0

    @property
    def size(self) -> int:
        """Return the number of elements in the main shape."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    def name(self, prefix: str = "v") -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def write(self, text: str, noise: str = "") -> None:
        """Append a line at the current indentation."""
        pad = "    " * self.indent
        self.lines.append(Line(pad + text, pad + noise if noise else ""))

    def buffer(self, prefix: str, dtype: str, size: int, flavour: str, taints: frozenset[str] | None = None) -> str:
        """Add an argument and return its pointer's name in the kernel."""
        name = self.name(prefix)
        self.buffers.append(Buffer(name, dtype, size, flavour, taints))
        return f"{name}_ptr"

    def emit(
        self,
        expression: str,
        dtype: str,
        shape: Shape,
        operands: Collection[Value] = (),
        allowance: str = "",
        scales: Sequence[str] = (),
        target: Value | None = None,
    ) -> Value:
        """Append `v = expression` and return v.

        Args:
            expression: Text.
            dtype: Element type.
            shape: Sizes.
            operands: Values that the expression uses.
            allowance: Key in ALLOWANCES if a GPU may round otherwise.
            scales: Expressions whose magnitudes bound this error.
            target: Variable to assign; a new one by default.
        """
        taints = frozenset().union(*(v.taints for v in operands))
        if not allowance and dtype in FLOATS and taints - {SIGN_OF_ZERO}:
            allowance = "propagated"
        if allowance:
            taints |= {allowance}
        name = target.name if target else self.name()
        noise = f"{name} = perturb({', '.join((name, repr(allowance), *scales))})" if allowance else ""
        self.write(f"{name} = {expression}", noise if allowance != SIGN_OF_ZERO else "")
        return Value(name, dtype, shape, taints if dtype in FLOATS else frozenset())

    def keep(self, value: Value) -> Value:
        """Make a value available to later productions."""
        self.values.append(value)
        return value

    def pick(
        self, dtypes: Collection[str] = NUMBERS, shape: Shape | None = None, exact: bool = False, fresh: bool = False
    ) -> Value:
        """Return a value in one of the types.

        Args:
            dtypes: Types to choose from; a value may be cast to one.
            shape: Sizes; the main shape by default.
            exact: True if the value must have the same numbers on a GPU, including signs on zeros.
            fresh: True if the value must not be a product that a compiler may fuse.
        """
        wanted = self.shape if shape is None else shape
        usable = [
            v
            for v in self.values
            if v.shape == wanted and (not exact or not v.taints) and not (fresh and v.product and v.is_float)
        ]
        fitting = [v for v in usable if v.dtype in dtypes]
        if fitting and self.random.random() < 0.9:
            return self.random.choice(fitting[-6:])
        dtype = self.random.choice(sorted(dtypes))
        castable = [v for v in usable if v.exact or dtype in FLOATS]
        return self.cast(self.random.choice(castable[-6:]), dtype)

    def cast(self, value: Value, dtype: str) -> Value:
        """Return the value in another type, after a conversion that is defined for every number."""
        if value.dtype == dtype:
            return value
        name = value.name
        if value.is_float and dtype == BOOL:
            return self.emit(f"{name}.to(tl.int1)", dtype, value.shape)
        if value.is_float and dtype not in FLOATS:
            assert value.exact
            name = f"tl.abs(tame({name}))" if dtype in UNSIGNED else f"tame({name})"
        if value.dtype in ("uint32", "uint64") and dtype in FLOATS:
            # a GPU converts a sign-extended 64-bit integer as one of 32 bits (docs/results/differential.md)
            name = f"({name} >> 1).to(tl.float32)" if dtype == "bfloat16" else f"({name} >> 1)"
        result = self.emit(f"{name}.to(tl.{dtype})", dtype, value.shape, [value])
        return self.keep(result)

    def aligned(self, value: Value) -> str:
        """Return the text that broadcasts a value to the main shape."""
        if len(value.shape) < len(self.shape) and value.shape:
            return f"{value.name}[:, None]" if value.shape[0] == self.shape[0] else f"{value.name}[None, :]"
        return value.name

    def number(self, dtype: str) -> str:
        """Return a Python number, as text, for an operation with a tensor in this type."""
        if dtype in FLOATS:
            return self.random.choice(("0.5", "-1.25", "3.0", "0.1", "-2", "7", "1e-3", "100.0"))
        if dtype in UNSIGNED or dtype == BOOL:
            return self.random.choice(("1", "2", "5", "100"))
        return self.random.choice(("1", "-1", "3", "-7", "100", "-100"))

    def masked_bits(self, value: Value) -> str:
        """Return the text for a shift amount below the width."""
        return f"({value.name} & {BITS[value.dtype] - 1})"
