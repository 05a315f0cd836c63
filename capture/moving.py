"""Make `Module.to` move modules to devices outside PyTorch's tree as it moves them to PyTorch's own devices."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch.nn import parameter


@cache
def keep_parameters() -> None:
    """Keep tied parameters tied and lazy ones lazy, for the rest of the process.

    PyTorch cannot move a parameter to an out-of-tree device in place. Without
    `torch.__future__.set_swap_module_params_on_conversion` it makes new parameters, one for each use of a tied one.
    With it, an uninitialized parameter would become an ordinary one without elements.
    """
    torch.__future__.set_swap_module_params_on_conversion(True)
    lazy: Any = parameter.UninitializedTensorMixin  # type: ignore[attr-defined]
    lazy.to = _moved
    lazy.detach = _moved  # Module.to makes a Parameter with the result
    lazy._allowed_methods.append(torch.Tensor.requires_grad_)


def _moved(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Return a new uninitialized parameter or buffer, perhaps with another device or dtype."""
    device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs) if args or kwargs else (None, None)
    lazy_parameter = isinstance(self, parameter.UninitializedParameter)
    kind: Any = parameter.UninitializedParameter if lazy_parameter else parameter.UninitializedBuffer
    return kind(self.requires_grad, device=device or self.device, dtype=dtype or self.dtype)  # type: ignore[no-any-return]
