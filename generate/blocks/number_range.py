"""Range checks of numbers that a dtype cannot hold, which ATen refuses to convert."""

import math

import torch

__all__ = ["without_overflow"]


def without_overflow(dtype, *values):
    """Raise RuntimeError if a Python number among the values is out of the dtype's range.

    The rule is `overflows` of c10/util/TypeCast.h. Bools take all numbers, floats also take infinity and NaN,
    and unsigned integers take all integers above -(max + 1).
    """
    if dtype == torch.bool:
        return
    integral = not (dtype.is_floating_point or dtype.is_complex)
    limits = torch.iinfo(dtype) if integral else torch.finfo(dtype)
    for value in values:
        parts = (value.real, value.imag) if isinstance(value, complex) else (value,)
        for part in parts if isinstance(value, (int, float, complex)) else ():
            number, least, most = float(part), float(limits.min), float(limits.max)
            if isinstance(part, int):
                number, least, most = int(part), limits.min or -limits.max, limits.max
            if not (least <= number <= most) and (integral or math.isfinite(number)):
                raise RuntimeError(f"value {value} cannot be converted to {dtype} without overflow")
