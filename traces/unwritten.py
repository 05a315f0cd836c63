"""Operator results that a replay cannot compare, because the operator leaves them unwritten or internal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from traces.records import CallRecord


def incomparable(record: CallRecord, arguments: Mapping[str, Any]) -> dict[int, str]:
    """Return the reason for each result whose contents cannot be compared, by its position in the result.

    Args:
        record: The stored call.
        arguments: Its arguments by schema name.
    """
    rule = _RULES.get(record.overload)
    return rule(record, arguments) if rule is not None else {}


def _rnn(record: CallRecord, arguments: Mapping[str, Any]) -> dict[int, str]:
    if record.grad is None:
        reason = "mkldnn_rnn_layer computes otherwise for gradients, and the trace does not say whether these were on"
        return dict.fromkeys(range(4), reason)
    return {3: "the workspace of mkldnn_rnn_layer has a form of the library's own, and is made only for gradients"}


def _ctc(record: CallRecord, arguments: Mapping[str, Any]) -> dict[int, str]:
    """Return the reason for log_alpha, whose elements past the end of a shorter sample are never written."""
    longest = arguments["log_probs"].shape[0]
    inputs, targets = (_numbers(arguments[name]) for name in ("input_lengths", "target_lengths"))
    if all(n == longest for n in inputs) and len(set(targets)) <= 1:
        return {}
    return {1: "log_alpha of _ctc_loss is not written beyond the end of the shorter samples"}


def _numbers(lengths: Any) -> list[int]:
    return [int(n) for n in (lengths.tolist() if isinstance(lengths, torch.Tensor) else lengths)]


_RULES: dict[str, Callable[[CallRecord, Mapping[str, Any]], dict[int, str]]] = {
    "aten::mkldnn_rnn_layer": _rnn,
    "aten::_ctc_loss": _ctc,
    "aten::_ctc_loss.Tensor": _ctc,
}
