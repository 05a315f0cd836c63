"""Row-wise Adagrad: one accumulator for each row of an embedding table, as DLRM trains its tables.

For a row w with width D and gradient g, and its accumulator m:

    m <- m + mean(g * g)
    w <- w - lr * g / (sqrt(m) + eps)

Parameters outside the tables have one accumulator for each element, as in Adagrad (Duchi et al., 2011). The row-wise
variant follows arXiv:2009.05165, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


class RowwiseAdagrad(torch.optim.Optimizer):
    """Row-wise Adagrad for tables, Adagrad for other parameters.

    Parameter groups with `rowwise=True` hold tables [rows, D], whose gradients are dense or sparse [rows, D].
    """

    def __init__(self, parameters: Iterable[Any], lr: float = 1e-2, eps: float = 1e-10) -> None:
        super().__init__(parameters, {"lr": lr, "eps": eps, "rowwise": False})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            shape = parameter.shape[:1] if group["rowwise"] else parameter.shape
            state["sum"] = torch.zeros(shape, dtype=parameter.dtype, device=parameter.device)
        if gradient.is_sparse:
            self._update_rows(parameter, gradient.coalesce(), state["sum"], group)
            return
        square = gradient * gradient
        total = state["sum"].add_(square.mean(dim=1) if group["rowwise"] else square)
        scale = total.sqrt().add_(group["eps"])
        parameter.addcdiv_(gradient, scale.unsqueeze(1) if group["rowwise"] else scale, value=-group["lr"])

    def _update_rows(self, parameter: Tensor, gradient: Tensor, total: Tensor, group: dict[str, Any]) -> None:
        rows, values = gradient.indices()[0], gradient.values()  # [N], [N, D]; coalesced, so each row occurs once
        total.index_add_(0, rows, (values * values).mean(dim=1))
        scale = total.index_select(0, rows).sqrt_().add_(group["eps"])  # [N]
        parameter.index_add_(0, rows, values / scale.unsqueeze(1), alpha=-group["lr"])
