"""Generate the lines of a fused kernel and its wrapper.

`KernelLines` also derives each new value's shape and memory layout from its operands.
"""

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
    """The lines of a kernel that is being generated.

    Attributes:
        functions: Functions and imports from kernel files.
        wrapper: Lines of the wrapper.
        main: Lines of the kernel's function.
        finish: Lines of the function that follows the column sums.
        columns: Terms that `main` adds to the column sums, in order.
        used: Inputs that the kernel reads.
        whole: The value whose dimensions `row` form a row; None if nothing is reduced.
        row: Dimensions of `whole` that form a row.
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
        """Write `v = text`, and return the variable's name."""
        lines = self.finish if finish else self.main
        name = f"{'w' if finish else 'v'}{len(lines)}"
        lines.append(f"{name} = {text}")
        return name

    def expression(self, value: ComposedValue, at: ComposedValue) -> KernelExpression:
        """Return a value's expression for use in another value; an input becomes a parameter of the kernel."""
        if value.expression is not None:
            if value.level == "column" and at.level != "column":
                raise Uncomposable("a sum down columns is used in the rows again")
            return value.expression
        if at.level == "column":
            raise Uncomposable("a sum down columns is combined with another tensor")
        for used in self.used:
            if used.tensor == value.tensor and used.at.shapes == at.shapes and used.at.level == at.level:
                return KernelExpression(used.parameter, value.like.dtype)
        self.used.append(UsedInput(f"x{len(self.used)}", value.tensor, value, at))
        return KernelExpression(self.used[-1].parameter, value.like.dtype)

    def combined(self, operands: Sequence[ComposedValue], like: torch.Tensor) -> ComposedValue:
        """Return a value that is computed element by element from the operands, without an expression yet."""
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

    def assign(
        self, text: str, common: torch.dtype, dtype: torch.dtype, at: ComposedValue, cast: bool = False
    ) -> ComposedValue:
        """Write a function's result to a variable, and return it as a value with its own dtype.

        Half-precision results stay in fp32 unless `cast` is set.

        Args:
            text: Expression.
            common: Dtype that the function computes in.
            dtype: Dtype of the result in ATen.
            at: Value with the result's shape, level and layout.
            cast: True to round to `dtype`.
        """
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
        """Return the value that results from reducing `whole` along these dimensions, without an expression yet."""
        keepdim = len(like.shape) == len(whole.shape)
        block = self.functions.block("fused_rows", "shape_reduced")
        shape = f"{block}({self.wrapper.shape(whole.shapes, self.functions)}, {tuple(dims)}, {keepdim})"
        return ComposedValue(like, None, "", level, (self.wrapper.named(shape),), True, whole.sources)

    def add_column(self, text: str) -> str:
        """Add a term to sum over rows, and return the sum's variable in `finish`."""
        self.columns.append(f"{self.functions.block('fused_rows', 'column_sum')}({text}, mask)")
        return f"t{len(self.columns) - 1}"

    def reduces(self, whole: ComposedValue, dims: Sequence[int], along: bool) -> None:
        """Define a row as the given dimensions of a value, or, if `along` is False, as its other dimensions.

        Raises:
            Uncomposable: If the kernel already has rows of another shape.
        """
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
    """Return the inputs that determine the memory layout of a tensor with `count` elements.

    These are the inputs before the first operand that is contiguous in all its dimensions. An operand that is
    broadcast over rows, such as a reduction's result, does not count.
    """
    sources: list[str] = []
    for value in operands:
        if value.reduced and value.like.numel() == count:
            break
        sources += [] if value.reduced else value.sources
    return tuple(dict.fromkeys(sources))


def sizes(value: ComposedValue, row: Collection[int]) -> tuple[int, int]:
    """Return the number of rows, and the elements in each, if these dimensions form a row."""
    n = math.prod(value.shape[d] for d in row)
    return math.prod(n for d, n in enumerate(value.shape) if d not in row), n
