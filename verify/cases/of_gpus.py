"""Answers to calls that ATen takes on GPUs alone, computed on the CPU by other operators or in other dtypes.

Medians of bools: those of bytes. Batch normalization of half precision with some parameters in fp32 and others not: as
with all of them in fp32, in which ATen keeps statistics on GPUs; gradients have their parameters' dtypes.

Batch normalization of GPUs' libraries: as the native one, with nothing reserved for the backward pass.
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
    found = op(**{**a, "self": a["self"].view(torch.uint8)})
    return found.bool() if isinstance(found, Tensor) else (found[0].bool(), *found[1:])


def _batch_norm(op: OpOverload, a: Mapping[str, Any], philox: Philox) -> Any:
    given = {name: a[name] for name in _PARAMETERS if a.get(name) is not None}
    if {t.dtype for t in given.values()} != {a["input"].dtype, torch.float32} or a["input"].dtype == torch.float32:
        return op(**a)
    wide = {name: t.float() for name, t in given.items()}
    found = op(**{**a, **wide})
    if "grad_out" not in a:
        for name in set(_RUNNING) & given.keys():
            given[name].copy_(wide[name])
        return found
    dtype = given["weight"].dtype if "weight" in given else torch.float32
    return found[0], *(None if t is None else t.to(dtype) for t in found[1:])


def _of_library(a: Mapping[str, Any], philox: Philox) -> Any:
    given = [a[name] for name in (*_WITH_STATISTICS, "exponential_average_factor", "epsilon")]
    return torch.ops.aten.native_batch_norm.default(*given)


def _reserving(a: Mapping[str, Any], philox: Philox) -> Any:
    return *_of_library(a, philox), torch.empty(0, dtype=torch.uint8)


def _of_library_backward(a: Mapping[str, Any], philox: Philox) -> Any:
    given = [a[name] for name in ("grad_output", "input", "weight", *_SAVED)]
    return torch.ops.aten.native_batch_norm_backward.default(*given, True, a["epsilon"], [True, True, True])


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
