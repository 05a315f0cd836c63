"""The lines of a kernel and of its wrapper that are being written, and what values are made of others there."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import torch

from generate.subgraphs.asking import Uncomposable
from generate.subgraphs.functions import TakenFunctions
from generate.subgraphs.values import (
    HALVES,
    ComposedValue,
    KernelExpression,
    UsedInput,
    ValueLevel,
    WrapperLines,
    types_of,
)


class KernelLines:
    """main: lines of the kernel's function; finish: of what follows sums down columns. columns: what main adds to
    these, in their order. whole: the value whose last `trailing` dimensions are a row, None where nothing is reduced
    """

    def __init__(self) -> None:
        self.functions, self.wrapper = TakenFunctions(), WrapperLines()
        self.main: list[str] = []
        self.finish: list[str] = []
        self.columns: list[str] = []
        self.used: list[UsedInput] = []
        self.whole: ComposedValue | None = None
        self.row: frozenset[int] = frozenset()

    def line(self, text: str, finish: bool = False) -> str:
        """Write `v = text`; returns the variable."""
        lines = self.finish if finish else self.main
        name = f"{'w' if finish else 'v'}{len(lines)}"
        lines.append(f"{name} = {text}")
        return name

    def expression(self, value: ComposedValue, at: ComposedValue) -> KernelExpression:
        """A value as it is used to make another."""
        if value.expression is not None:
            if value.level == "column" and at.level != "column":
                raise Uncomposable("what is summed down columns is used in the rows again")
            return value.expression
        if at.level == "column":
            raise Uncomposable("what is summed down columns is combined with another tensor")
        for used in self.used:
            if used.tensor == value.tensor and used.at.shapes == at.shapes and used.at.level == at.level:
                return KernelExpression(used.parameter, value.like.dtype)
        self.used.append(UsedInput(f"x{len(self.used)}", value.tensor, value, at))
        return KernelExpression(self.used[-1].parameter, value.like.dtype)

    def combined(self, operands: Sequence[ComposedValue], like: torch.Tensor) -> ComposedValue:
        """What is made of values element by element, as yet without an expression."""
        computed = [v for v in operands if v.expression is not None]
        levels = {v.level for v in computed}
        level = "column" if levels == {"column"} else "element"
        if levels == {"row"} and like.numel() == max(v.like.numel() for v in computed):
            level = "row"
        ranked = [v for v in operands if v.like.dim() or not like.dim()]
        shapes = tuple(dict.fromkeys(s for v in ranked for s in v.shapes))
        sources = tuple(dict.fromkeys(s for v in operands for s in v.sources))
        reduced = any(v.reduced for v in operands)
        if level == "element" and reduced:
            sources = _deciding(operands, like.numel())
            reduced = not sources
        return ComposedValue(like, None, "", level, shapes, reduced, sources)  # type: ignore[arg-type]

    def held(
        self, text: str, common: torch.dtype, dtype: torch.dtype, at: ComposedValue, cast: bool = False
    ) -> ComposedValue:
        """A result of a function of this common dtype, of its own dtype."""
        wide = dtype in HALVES and not cast
        if cast or not wide and not (dtype.is_floating_point and types_of(common)[1] == types_of(dtype)[0]):
            text = f"{self.functions.block('types', 'convert')}({text}, {types_of(dtype)[0]})"
        elif wide and types_of(common)[1] != "tl.float32":
            text = f"({text}).to(tl.float32)"
        variable = self.line(text, at.level == "column")
        like = at.like if at.like.dtype == dtype else torch.empty_like(at.like, dtype=dtype)
        return ComposedValue(
            like, KernelExpression(variable, dtype, wide), "", at.level, at.shapes, at.reduced, at.sources
        )

    def reduced(
        self, whole: ComposedValue, like: torch.Tensor, dims: Sequence[int], level: ValueLevel
    ) -> ComposedValue:
        """What is left of a value when it is reduced along these dimensions, as yet without an expression."""
        kept = len(like.shape) == len(whole.shape)
        block = self.functions.block("fused_rows", "shape_reduced")
        told = f"{block}({self.wrapper.shape(whole.shapes, self.functions)}, {tuple(dims)}, {kept})"
        return ComposedValue(like, None, "", level, (self.wrapper.named(told),), True, whole.sources)

    def add_column(self, text: str) -> str:
        """Sum this down columns; returns the sum's variable in `finish`."""
        self.columns.append(f"{self.functions.block('fused_rows', 'column_sum')}({text}, mask)")
        return f"t{len(self.columns) - 1}"

    def reduces(self, whole: ComposedValue, dims: Sequence[int], along: bool) -> None:
        """A row is what lies along these dimensions of a value, or else along its others. Raises Uncomposable where
        rows were others before."""
        rank = len(whole.shape)
        named = frozenset(d % max(rank, 1) for d in dims)
        row = named if along else frozenset(range(rank)) - named
        if self.whole is None:
            self.whole, self.row = whole, row
            block = self.functions.block("fused_rows", "row_dimensions")
            shape = self.wrapper.shape(whole.shapes, self.functions)
            self.wrapper.lines.append(f"row = {block}(len({shape}), {tuple(dims)}, {along})")
        elif sizes(whole, row) != sizes(self.whole, self.row) or (rank == len(self.whole.shape) and row != self.row):
            raise Uncomposable("reductions along rows of different sizes")


def _deciding(operands: Sequence[ComposedValue], count: int) -> tuple[str, ...]:
    """The inputs that decide how memory of so many elements lies: those before the first that lies in the order of all
    its dimensions. One that is broadcast over rows, as what is left of a reduction is, decides nothing."""
    found: list[str] = []
    for value in operands:
        if value.reduced and value.like.numel() == count:
            break
        found += [] if value.reduced else value.sources
    return tuple(dict.fromkeys(found))


def sizes(value: ComposedValue, row: Collection[int]) -> tuple[int, int]:
    """How many rows there are, and elements in each, where these dimensions are a row."""
    n = math.prod(value.shape[d] for d in row)
    return math.prod(n for d, n in enumerate(value.shape) if d not in row), n
