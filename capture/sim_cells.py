"""Where PyTorch asks an out-of-tree device for something else than CUDA: cells of LSTM and GRU in parts, CTC losses.

The formulas are those of PyTorch's CUDA kernels (aten/src/ATen/native/cuda/RNN.cu), which no other backend shares.
"""

from __future__ import annotations

import torch
from torch import Tensor


def install() -> torch.library.Library:
    """Make the cells composite, for devices that have no kernels for them, and CTC losses take lengths of the host;
    what is returned has to be kept."""
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
    """By lengths of the host, wherever these are, as CUDA; PyTorch expects them on an out-of-tree device."""
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
    """hy, cy [B, H], and the gates [B, 4 H]. gates: [B, 4 H], cx: [B, H], biases: [4 H]."""
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
    """hy [B, H], and the gates of the input [B, 3 H]. gates: [B, 3 H], hx: [B, H], biases: [3 H]."""
    gates = _biased(input_gates, input_bias)
    input_r, input_z, input_n = gates.chunk(3, 1)
    hidden_r, hidden_z, hidden_n = _biased(hidden_gates, hidden_bias).chunk(3, 1)
    r, z = (input_r + hidden_r).sigmoid(), (input_z + hidden_z).sigmoid()
    n = (input_n + r * hidden_n).tanh()
    return n + z * (hx - n), gates


def _biased(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias
