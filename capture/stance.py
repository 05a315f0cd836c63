"""Compilation is disabled while operators are recorded, except for higher-order operators that require it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def force_eager() -> Iterator[None]:
    """Run compiled functions and modules as plain Python inside the block, in every thread.

    `torch.compiler.set_stance("force_eager")` would do so too, but it disables more. `torch.cond`, `map`, `scan`,
    `while_loop` and `flex_attention` capture their functions with `torch.compile` and backend "eager", which runs the
    captured operators one by one. Without that capture they raise, or return a different result if gradients are
    required.
    """
    from torch._dynamo.eval_frame import DynamoStance, _set_stance

    try:
        from torch._higher_order_ops.utils import _in_hop_compile
    except ImportError:  # torch before 2.13 does not expose the reason for a compilation
        with torch.compiler.set_stance("force_eager"):
            yield
        return

    class Eager(DynamoStance):
        @property
        def stance(self) -> str:
            return "default" if _in_hop_compile() else "force_eager"

        @stance.setter
        def stance(self, value: str) -> None:
            """Ignore the value that the base class sets."""

    before = _set_stance(Eager())
    try:
        yield
    finally:
        _set_stance(before)
