"""Answers to calls that ATen supports on GPUs only, computed on the CPU by other operators or in other dtypes.

- The median over bools equals the median over bytes.
- Batch normalization on half precision with only some parameters in fp32 is computed with all parameters in
  fp32. ATen on GPUs keeps the statistics in fp32; gradients have their parameters' dtypes.
- Batch normalization from GPU libraries (cuDNN, MIOpen) equals the native one, with an empty reserve for the
  backward pass.

Used by verify/cases/references.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch._ops import OpOverload

from traces.overloads import name_of
from verify.contract.random_state import Philox

Answer: TypeAlias = Callable[[Mapping[str, Any], Philox], Any]
_RUNNING = "running_mean", "running_var"
_WITH_STATISTICS = "input", "weight", "bias", "running_mean", "running_var", "training"
_SAVED = "running_mean", "running_var", "save_mean", "save_var"
_PARAMETERS = *_RUNNING, "weight", "bias", "save_mean", "save_invstd"


def _median(op: OpOverload, a: Mapping[str, Any], philox: Philox) -> Any:
    if a["self"].dtype != torch.bool:
        return op(**a)
    result = op(**{**a, "self": a["self"].view(torch.uint8)})
    return result.bool() if isinstance(result, Tensor) else (result[0].bool(), *result[1:])


def _batch_norm(op: OpOverload, a: Mapping[str, Any], philox: Philox) -> Any:
    parameters = {name: a[name] for name in _PARAMETERS if a.get(name) is not None}
    if {t.dtype for t in parameters.values()} != {a["input"].dtype, torch.float32} or a["input"].dtype == torch.float32:
        return op(**a)
    wide = {name: t.float() for name, t in parameters.items()}
    result = op(**{**a, **wide})
    if "grad_out" not in a:
        for name in set(_RUNNING) & parameters.keys():
            parameters[name].copy_(wide[name])
        return result
    dtype = parameters["weight"].dtype if "weight" in parameters else torch.float32
    return result[0], *(None if t is None else t.to(dtype) for t in result[1:])


def _of_library(a: Mapping[str, Any], philox: Philox) -> Any:
    operands = [a[name] for name in (*_WITH_STATISTICS, "exponential_average_factor", "epsilon")]
    return torch.ops.aten.native_batch_norm.default(*operands)


def _reserving(a: Mapping[str, Any], philox: Philox) -> Any:
    return *_of_library(a, philox), torch.empty(0, dtype=torch.uint8)


def _of_library_backward(a: Mapping[str, Any], philox: Philox) -> Any:
    operands = [a[name] for name in ("grad_output", "input", "weight", *_SAVED)]
    return torch.ops.aten.native_batch_norm_backward.default(*operands, True, a["epsilon"], [True, True, True])


def _answers(answer: Callable[[OpOverload, Mapping[str, Any], Philox], Any], *ops: OpOverload) -> dict[str, Answer]:
    return {name_of(op): partial(answer, op) for op in ops}


_aten = torch.ops.aten
ANSWERS: dict[str, Answer] = {
    **_answers(_median, _aten.median.default, _aten.median.dim, _aten.nanmedian.default, _aten.nanmedian.dim),
    **_answers(
        _batch_norm,
        _aten.native_batch_norm.default,
        _aten._native_batch_norm_legit.default,
        _aten.native_batch_norm_backward.default,
    ),
    "aten::cudnn_batch_norm": _reserving,
    "aten::cudnn_batch_norm_backward": _of_library_backward,
    "aten::miopen_batch_norm": _of_library,
    "aten::miopen_batch_norm_backward": _of_library_backward,
}
