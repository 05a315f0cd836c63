"""Write layer normalization and its gradient as kernel lines, with functions from blocks/fused_rows.py.

The library's kernels for these operators launch themselves and pass no functions to blocks, so `asking` cannot read
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from generate.subgraphs.asking import Uncomposable
from generate.subgraphs.lines import KernelLines
from generate.subgraphs.values import HALVES, ComposedValue

Find: TypeAlias = Callable[[Any], ComposedValue | None]
_FP32 = torch.float32


def _forward(
    steps: KernelLines, arguments: Mapping[str, Any], made: Sequence[torch.Tensor], find: Find
) -> list[ComposedValue]:
    """Write `native_layer_norm`: output, mean and reciprocal standard deviation.

    All arithmetic is in fp32. The statistics are fp32 if the parameters have a half-precision dtype.
    """
    x, weight, bias = (find(arguments[name]) for name in ("input", "weight", "bias"))
    whole, text = _row(steps, x, _row_of(arguments), made[0])
    block = steps.functions.block
    mean = steps.line(f"{block('fused_rows', 'row_mean')}({text}, mask, n)")
    deviation = block("fused_rows", "inverse_deviation_of_rows")
    rstd = steps.line(f"{deviation}({text}, {mean}, mask, n, {float(arguments['eps'])!r})")
    out = f"({text} - {mean}) * {rstd}"
    out += f" * {_read(steps, weight, whole)}" if weight is not None else ""
    out += f" + {_read(steps, bias, whole)}" if bias is not None else ""
    parameter = weight or bias or x
    assert parameter is not None
    statistics_dtype = _FP32 if parameter.like.dtype in HALVES else parameter.like.dtype
    row = steps.reduced(whole, made[1], _row_of(arguments), "row")
    return [
        steps.assign(out, _FP32, made[0].dtype, whole),
        steps.assign(mean, _FP32, statistics_dtype, row),
        steps.assign(rstd, _FP32, statistics_dtype, row),
    ]


def _backward(
    steps: KernelLines, arguments: Mapping[str, Any], made: Sequence[torch.Tensor | None], find: Find
) -> list[ComposedValue | None]:
    """Write `native_layer_norm_backward`: the gradients that `output_mask` selects.

    The parameters' gradients are column sums.
    """
    names = ("grad_out", "input", "mean", "rstd", "weight")
    grad, x, mean, rstd, weight = (find(arguments[name]) for name in names)
    assert grad is not None and x is not None and mean is not None and rstd is not None
    whole, text = _row(steps, x, _row_of(arguments), torch.empty_like(x.like))
    g = steps.line(_read(steps, grad, whole))
    xhat = steps.line(f"({text} - {_read(steps, mean, whole)}) * {_read(steps, rstd, whole)}")
    gradients: list[ComposedValue | None] = [None, None, None]
    if arguments["output_mask"][0]:
        weighted = g if weight is None else steps.line(f"{g} * {_read(steps, weight, whole)}")
        gradient = steps.functions.block("fused_rows", "layer_norm_gradient")
        out = f"{gradient}({weighted}, {xhat}, {_read(steps, rstd, whole)}, mask, n)"
        gradients[0] = steps.assign(out, _FP32, x.like.dtype, whole)
    for k, summed in ((1, f"{g} * {xhat}"), (2, g)):
        like = made[k]
        if arguments["output_mask"][k] and like is not None:
            total = steps.add_column(summed)
            gradients[k] = steps.assign(total, _FP32, like.dtype, _column_of(steps, whole, like))
    return gradients


def _row_of(arguments: Mapping[str, Any]) -> list[int]:
    """Return the normalized dimensions, counted from the end."""
    return list(range(-len(arguments["normalized_shape"]), 0))


def _column_of(steps: KernelLines, whole: ComposedValue, like: torch.Tensor) -> ComposedValue:
    """Return a value with a parameter gradient's shape, without an expression."""
    shape = f"{steps.wrapper.shape(whole.shapes, steps.functions)}[-{like.dim()}:]"
    return ComposedValue(like, None, "", "column", (steps.wrapper.named(shape),), True, whole.sources)


def _row(steps: KernelLines, x: ComposedValue | None, row: list[int], like: torch.Tensor) -> tuple[ComposedValue, str]:
    """Return the value that is normalized, and its variable in fp32."""
    assert x is not None
    if x.like.dtype not in (*HALVES, _FP32):
        raise Uncomposable(f"layer normalization of {x.like.dtype}")
    whole = steps.combined([x], like)
    steps.reduces(whole, row, along=True)
    whole.reduced = True
    return whole, steps.line(_read(steps, x, whole))


def _read(steps: KernelLines, value: ComposedValue | None, at: ComposedValue) -> str:
    """Return a value's expression in fp32."""
    assert value is not None
    return steps.expression(value, at).read(_FP32, steps.functions)


WRITTEN: dict[str, Callable[..., Sequence[ComposedValue | None]]] = {
    "native_layer_norm": _forward,
    "native_layer_norm_backward": _backward,
}
