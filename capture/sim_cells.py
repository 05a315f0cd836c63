"""Operators for which PyTorch expects more from an out-of-tree device than from CUDA: LSTM and GRU cells, CTC losses.

The formulas are those of PyTorch's CUDA kernels (aten/src/ATen/native/cuda/RNN.cu), which no other backend shares.
"""

from __future__ import annotations

import torch
from torch import Tensor


def install() -> torch.library.Library:
    """Register the cells as composite operators, and a CTC loss that accepts lengths on the host.

    The cells apply to devices without their own kernels. Keep the returned library alive: its registrations end with
    it.
    """
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    for name, parts in (("_thnn_fused_lstm_cell", lstm_cell), ("_thnn_fused_gru_cell", gru_cell)):
        library.impl(name, parts, "CompositeImplicitAutograd")  # type: ignore[no-untyped-call]
    library.impl("ctc_loss.Tensor", ctc_loss, "AutogradPrivateUse1")  # type: ignore[no-untyped-call]
    return library


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """Compute the CTC loss with lengths on the host, wherever they are, as CUDA does.

    PyTorch expects them on the device itself if the device is out-of-tree.
    """
    lengths = input_lengths.tolist(), target_lengths.tolist()
    loss: Tensor = torch.ops.aten.ctc_loss.IntList(log_probs, targets, *lengths, blank, reduction, zero_infinity)
    return loss


def lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute one LSTM step.

    Args:
        input_gates: [B, 4 H].
        hidden_gates: [B, 4 H].
        cx: [B, H].
        input_bias: [4 H] or None.
        hidden_bias: [4 H] or None.

    Returns:
        tuple: hy [B, H], cy [B, H], and the gates before activation, [B, 4 H].
    """
    gates = _biased(input_gates, input_bias) + _biased(hidden_gates, hidden_bias)
    i, f, g, o = gates.chunk(4, 1)
    cy = f.sigmoid() * cx + i.sigmoid() * g.tanh()
    return o.sigmoid() * cy.tanh(), cy, gates


def gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute one GRU step.

    Args:
        input_gates: [B, 3 H].
        hidden_gates: [B, 3 H].
        hx: [B, H].
        input_bias: [3 H] or None.
        hidden_bias: [3 H] or None.

    Returns:
        tuple: hy [B, H], and the input gates with bias, [B, 3 H].
    """
    gates = _biased(input_gates, input_bias)
    input_r, input_z, input_n = gates.chunk(3, 1)
    hidden_r, hidden_z, hidden_n = _biased(hidden_gates, hidden_bias).chunk(3, 1)
    r, z = (input_r + hidden_r).sigmoid(), (input_z + hidden_z).sigmoid()
    n = (input_n + r * hidden_n).tanh()
    return n + z * (hx - n), gates


def _biased(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias
