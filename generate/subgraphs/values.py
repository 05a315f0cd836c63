"""Values of a subgraph as a kernel that is being written has them: in which variable, of which type, over which shape.

A half-precision value between two steps is kept in fp32, so that less is rounded than by one operator after the other.
It is rounded where a step says so (a cast), and before what a little rounding would change altogether.
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
PRODUCT = "product"  # in place of an input, of which memory lies in the order of a product's
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
}  # what elements are of, and what is computed in (generate/blocks/types.py)


@dataclass(frozen=True)
class KernelExpression:
    """A variable of a kernel. dtype: as ATen has it. wide: of half precision, and held in fp32."""

    text: str
    dtype: torch.dtype
    wide: bool = False

    def read(self, common: torch.dtype, functions: TakenFunctions, exactly: bool = False) -> str:
        """It in the type that a function of this common dtype computes in. exactly: rounded to its own dtype first."""
        element, opmath = types_of(common)
        text = self.text
        if self.wide and (exactly or not common.is_floating_point):
            text = f"{functions.block('types', 'convert')}({text}, {types_of(self.dtype)[0]})"
        if self.dtype == common or (self.dtype in HALVES and common in (torch.float32, torch.float64)):
            held = "tl.float32" if text == self.text and self.wide else types_of(self.dtype)[0]
            return text if held == opmath else f"{text}.to({opmath})"
        text = f"{functions.block('types', 'convert')}({text}, {element})"
        return text if element == opmath else f"{text}.to({opmath})"


def types_of(dtype: torch.dtype) -> tuple[str, str]:
    if dtype not in TYPES:
        raise Uncomposable(f"tensors of {str(dtype).removeprefix('torch.')}")
    return TYPES[dtype]


def number(value: AskedNumber, common: torch.dtype) -> str:
    """A Python number as a value of a kernel (`number_argument` of generate/blocks/types.py)."""
    found: float | int | bool = value.value
    if isinstance(found, complex) or not isinstance(found, int | float):
        raise Uncomposable(f"the number {found!r}")
    if common.is_floating_point:
        found = float(found)
        if common != torch.float64 and math.isfinite(found) and abs(found) >= 3.4028235677973366e38:
            found = math.copysign(math.inf, found)
        text = repr(found) if math.isfinite(found) else f'float("{found}")'
    else:
        whole = int(found != 0) if common == torch.bool else int(found)
        text = str(whole % 256 if common == torch.uint8 else whole)
    return f"tl.full([], {text}, {types_of(common)[1]})"


@dataclass
class ComposedValue:
    """A value of a subgraph. like: of no memory, with its dtype and, in the example, its shape. expression: None for an
    input, which has one wherever it is used. tensor: an input as the wrapper has it. level: element by element, one of
    a row, or one of a column. shapes: what is broadcast to its shape, as the wrapper's source has it. reduced: whether
    it was made by way of a reduction, or is a view of what was computed: then its memory is in the order of its
    dimensions. sources: the inputs that it is made of, in the order in which they decide how its memory lies."""

    like: torch.Tensor
    expression: KernelExpression | None = None
    tensor: str = ""
    level: ValueLevel = "element"
    shapes: tuple[str, ...] = ()
    reduced: bool = False
    sources: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.like.shape)


@dataclass
class UsedInput:
    """An input as a kernel has it. parameter: its name there. at: shapes to which it is broadcast, and value: that
    which it is used for."""

    parameter: str
    tensor: str
    value: ComposedValue
    at: ComposedValue


@dataclass
class WrapperLines:
    """The lines of a wrapper that is being written. Shapes have names there."""

    lines: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def named(self, text: str) -> str:
        """The variable that holds what this says."""
        if text not in self._names:
            self._names[text] = name = f"s{len(self._names)}"
            self.lines.append(f"{name} = {text}")
        return self._names[text]

    def shape(self, shapes: Sequence[str], functions: TakenFunctions) -> str:
        """The shape to which these are broadcast."""
        if len(shapes) == 1:
            return shapes[0]
        return self.named(f"{functions.block('fused_elements', 'broadcast_shape')}({', '.join(shapes)})")
