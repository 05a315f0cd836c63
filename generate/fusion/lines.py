"""The lines of a kernel and of its wrapper that are being written, and what values are made of others there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from generate.fusion.asking import Uncomposable
from generate.fusion.functions import TakenFunctions
from generate.fusion.values import HALVES, ComposedValue, KernelExpression, UsedInput, WrapperLines, types_of


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
        self.trailing = 0

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
        return ComposedValue(like, None, "", level, shapes, any(v.reduced for v in operands), sources)  # type: ignore[arg-type]

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

    def row_of(self, whole: ComposedValue, like: torch.Tensor) -> ComposedValue:
        """The level of what is one element a row, without an expression."""
        shape, k = self.wrapper.shape(whole.shapes, self.functions), self.trailing
        kept = len(like.shape) == len(whole.shape)
        told = f"(*{shape}[:-{k}], {', '.join(['1'] * k)})" if kept else f"{shape}[:-{k}]"
        return ComposedValue(like, None, "", "row", (self.wrapper.named(told),), True, whole.sources)

    def column_of(self, whole: ComposedValue, like: torch.Tensor) -> ComposedValue:
        """The same of a column."""
        shape, k = self.wrapper.shape(whole.shapes, self.functions), self.trailing
        lead = "*[1] * " + str(len(whole.shape) - k) + ", " if len(like.shape) == len(whole.shape) else ""
        return ComposedValue(
            like, None, "", "column", (self.wrapper.named(f"({lead}*{shape}[-{k}:],)"),), True, whole.sources
        )

    def add_column(self, text: str) -> str:
        """Sum this down columns; returns the sum's variable in `finish`."""
        self.columns.append(f"{self.functions.block('fused_rows', 'column_sum')}({text}, mask)")
        return f"t{len(self.columns) - 1}"

    def reduces(self, whole: ComposedValue, trailing: int) -> None:
        """Rows are the last so many dimensions of this value. Raises Uncomposable where others were before."""
        rows = sizes(whole, trailing)
        if self.whole is None:
            self.whole, self.trailing = whole, trailing
        elif rows != sizes(self.whole, self.trailing):
            raise Uncomposable("reductions along rows of different sizes")


def sizes(value: ComposedValue, trailing: int) -> tuple[int, int]:
    """How many rows there are, and elements in each, where the last so many dimensions are a row."""
    lead = len(value.shape) - trailing
    return math.prod(value.shape[:lead]), math.prod(value.shape[lead:])
