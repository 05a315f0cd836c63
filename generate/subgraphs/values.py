"""Represent a subgraph's values in a kernel that is being generated: variable, dtype, shape and layout.

A half-precision value between two steps is kept in fp32, so that less is rounded than by separate operators. It
is rounded if a step says so (a cast), and before functions with discontinuities, where a rounding error changes
the result completely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import torch

from generate.subgraphs.asking import AskedNumber, Uncomposable
from generate.subgraphs.functions import TakenFunctions

ValueLevel: TypeAlias = Literal["element", "row", "column"]
PRODUCT = "product"  # stands for an input in `sources` if the memory layout is that of the product
HALVES = (torch.float16, torch.bfloat16)
TYPES = {
    torch.float16: ("tl.float16", "tl.float32"),
    torch.bfloat16: ("tl.bfloat16", "tl.float32"),
    torch.float32: ("tl.float32", "tl.float32"),
    torch.float64: ("tl.float64", "tl.float64"),
    torch.bool: ("tl.int1", "tl.int32"),
    torch.uint8: ("tl.uint8", "tl.int32"),
    torch.int8: ("tl.int8", "tl.int32"),
    torch.int16: ("tl.int16", "tl.int32"),
    torch.int32: ("tl.int32", "tl.int32"),
    torch.int64: ("tl.int64", "tl.int64"),
}  # element type and computation type by dtype (generate/blocks/types.py)


@dataclass(frozen=True)
class KernelExpression:
    """A variable in a kernel.

    Attributes:
        text: Expression.
        dtype: Dtype in ATen.
        wide: True if the dtype is half precision and the variable is fp32.
    """

    text: str
    dtype: torch.dtype
    wide: bool = False

    def read(self, common: torch.dtype, functions: TakenFunctions, exactly: bool = False) -> str:
        """Return the expression in the type that a function with this common dtype computes in.

        Args:
            common: Common dtype.
            functions: Functions and imports, to which the conversion is added.
            exactly: True to round to the value's own dtype first.
        """
        element, opmath = types_of(common)
        text = self.text
        if self.wide and (exactly or not common.is_floating_point):
            text = f"{functions.block('types', 'convert')}({text}, {types_of(self.dtype)[0]})"
        if self.dtype == common or (self.dtype in HALVES and common in (torch.float32, torch.float64)):
            variable_type = "tl.float32" if text == self.text and self.wide else types_of(self.dtype)[0]
            return text if variable_type == opmath else f"{text}.to({opmath})"
        text = f"{functions.block('types', 'convert')}({text}, {element})"
        return text if element == opmath else f"{text}.to({opmath})"


def types_of(dtype: torch.dtype) -> tuple[str, str]:
    """Return a dtype's element type and computation type, or raise Uncomposable."""
    if dtype not in TYPES:
        raise Uncomposable(f"tensors of {str(dtype).removeprefix('torch.')}")
    return TYPES[dtype]


def number(value: AskedNumber, common: torch.dtype) -> str:
    """Return a Python number as a kernel value, like `number_argument` in generate/blocks/types.py.

    For dtypes other than float64, a number that overflows fp32 becomes infinite.
    """
    scalar: float | int | bool = value.value
    if isinstance(scalar, complex) or not isinstance(scalar, int | float):
        raise Uncomposable(f"the number {scalar!r}")
    if common.is_floating_point:
        scalar = float(scalar)
        if common != torch.float64 and math.isfinite(scalar) and abs(scalar) >= 3.4028235677973366e38:
            scalar = math.copysign(math.inf, scalar)
        text = repr(scalar) if math.isfinite(scalar) else f'float("{scalar}")'
    else:
        whole = int(scalar != 0) if common == torch.bool else int(scalar)
        text = str(whole % 256 if common == torch.uint8 else whole)
    return f"tl.full([], {text}, {types_of(common)[1]})"


@dataclass
class ComposedValue:
    """A value in a subgraph.

    Attributes:
        like: Meta tensor with its dtype and its shape in the example.
        expression: Variable; None for an input, which gets one for each use.
        tensor: Source text in the wrapper, for an input.
        level: "element" for one per element, "row" for one per row, "column" for one per column.
        shapes: Source text of the shapes that are broadcast to its shape.
        reduced: True if it results from a reduction or is a view of a computed value; its memory is then contiguous.
        sources: Inputs that determine its memory layout, in order of precedence.
    """

    like: torch.Tensor
    expression: KernelExpression | None = None
    tensor: str = ""
    level: ValueLevel = "element"
    shapes: tuple[str, ...] = ()
    reduced: bool = False
    sources: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape in the example."""
        return tuple(self.like.shape)


@dataclass
class UsedInput:
    """An input that the kernel reads.

    Attributes:
        parameter: Name in the kernel.
        tensor: Source text in the wrapper.
        value: Input.
        at: Value that it is broadcast to.
    """

    parameter: str
    tensor: str
    value: ComposedValue
    at: ComposedValue


@dataclass
class WrapperLines:
    """The lines of a wrapper that is being generated; each distinct shape gets a variable."""

    lines: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def named(self, text: str) -> str:
        """Return the variable for an expression; write its line on first use."""
        if text not in self._names:
            self._names[text] = name = f"s{len(self._names)}"
            self.lines.append(f"{name} = {text}")
        return self._names[text]

    def shape(self, shapes: Sequence[str], functions: TakenFunctions) -> str:
        """Return the variable for the broadcast of these shapes."""
        if len(shapes) == 1:
            return shapes[0]
        return self.named(f"{functions.block('fused_elements', 'broadcast_shape')}({', '.join(shapes)})")
