"""Limits of a chip that its platform file states, beyond the dialect.

The child that compiles checks launches and programs (verify/child/limiting.py), and the interpreter computes as the
chip does (verify/child/numerics.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

# Dtypes as in DTYPES of a kernel file -> the names of Triton's types.
ELEMENTS = {
    **{"bool": "int1", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"},
    **{f"{kind}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{"float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5"},
    **{"float8_e4m3fnuz": "fp8e4b8", "float8_e5m2fnuz": "fp8e5b16"},
}
# Precisions of a product of float32 matrices -> the explicit bits of each operand's mantissa that take part.
PRECISIONS = {"ieee": 23, "tf32": 10, "tf32x3": 23, "bf16x3": 15, "bf16x6": 23}


@dataclass(frozen=True)
class ChipLimits:
    """Limits of a chip; an empty value states none.

    Attributes:
        grid: Most programs in each dimension. A grid has no further dimensions.
        block_elements: Most elements of a block, including every intermediate result.
        num_warps: Values that a launch may state.
        num_stages: Values that a launch may state.
        functions: Name of a function, such as tl.exp -> dtypes that it takes.
        dot_dtypes: Dtypes that tl.dot takes.
        dot_smallest: Smallest M, N and K for tl.dot.
        dot_largest: Largest M, N and K for tl.dot.
        dot_precision: Key of PRECISIONS: precision for tl.dot of float32 blocks without `input_precision`.
        flush_denormals: True if denormal numbers of float32 and bfloat16 are 0.
    """

    grid: tuple[int, ...] = ()
    block_elements: int = 0
    num_warps: tuple[int, ...] = ()
    num_stages: tuple[int, ...] = ()
    functions: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    dot_dtypes: tuple[str, ...] = ()
    dot_smallest: tuple[int, ...] = ()
    dot_largest: tuple[int, ...] = ()
    dot_precision: str = ""
    flush_denormals: bool = False

    def changed(self, stated: Mapping[str, Any]) -> Self:
        """Return the limits with these values, as a YAML file or JSON has them."""
        return replace(self, **{name: _immutable(value) for name, value in stated.items()})

    def stated(self) -> dict[str, Any]:
        """Return the limits that are set, by name."""
        return {name: value for name, value in vars(self).items() if value}


def _immutable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _immutable(item) for name, item in value.items()}
    return tuple(value) if isinstance(value, list) else value


def describe(limits: ChipLimits) -> list[str]:
    """Return the limits that are set, each as its name and value."""
    return [f"{name} {_text(value)}" for name, value in limits.stated().items()]


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_text(item)}" for name, item in value.items())
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
