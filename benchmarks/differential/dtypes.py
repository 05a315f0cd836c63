"""Triton's element types, variables in a generated program, and promotion rules."""

from __future__ import annotations

from dataclasses import dataclass

BOOL = "int1"
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("float16", "bfloat16", "float32", "float64")
NUMBERS = (*INTEGERS, *FLOATS)
LOADED = ("int8", "int16", "int32", "int64", "uint8", BOOL, *FLOATS)  # by input pointers
BITS = {BOOL: 1} | {name: int("".join(filter(str.isdigit, name))) for name in NUMBERS}
SIGN_OF_ZERO = "sign of zero"  # a value with only this taint counts as exact

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Value:
    """A variable in a generated program.

    Attributes:
        name: Name in the program.
        dtype: Element type.
        shape: Sizes; () for a scalar.
        taints: Allowances (allowances.py) that may have changed the value on a GPU.
        product: True if the value may be a float product, which compilers fuse with a sum.
        raw: True if the value was loaded from an input, so that even a NaN has known bits.
    """

    name: str
    dtype: str
    shape: Shape
    taints: frozenset[str] = frozenset()
    product: bool = False
    raw: bool = False

    @property
    def exact(self) -> bool:
        """Return True if a GPU has the same numbers, except for signs on zeros."""
        return self.taints <= {SIGN_OF_ZERO}

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS


def promote(a: str, b: str, division: bool = False) -> str:
    """Return the type in which Triton computes with two tensors (TritonSemantic.computation_type_impl)."""
    if "float64" in (a, b):
        return "float64"
    if division and (a in FLOATS or b in FLOATS):
        return "float32"
    if "float32" in (a, b):
        return "float32"
    if "float16" in (a, b):
        return "float16"
    if "bfloat16" in (a, b):
        return "bfloat16" if a == b else "float32"
    return _promoted_integer(a, b)


def promote_number(tensor: str, is_float: bool, division: bool = False) -> str:
    """Return the type in which Triton computes with a tensor and a Python number."""
    if tensor in FLOATS:
        return promote(tensor, tensor, division)
    return "float32" if is_float else tensor


def _promoted_integer(a: str, b: str) -> str:
    """Return the wider type; if the widths are equal, the unsigned one."""
    if (a in SIGNED) == (b in SIGNED):
        return a if BITS[a] > BITS[b] else b
    unsigned, signed = (b, a) if a in SIGNED else (a, b)
    return unsigned if BITS[unsigned] >= BITS[signed] else signed
