"""Nothing is compiled while operators are recorded, but for what higher-order operators need to run at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def force_eager() -> Iterator[None]:
    """Run compiled functions and modules as plain Python inside the block, in every thread.

    `torch.compiler.set_stance("force_eager")` would do so too, but switches off more: `torch.cond`, `map`, `scan`,
    `while_loop` and `flex_attention` capture their functions by `torch.compile` with the backend "eager", which runs
    the captured operators one by one. Without that they raise, or return something else, where gradients are wanted.
    """
    from torch._dynamo.eval_frame import DynamoStance, _set_stance

    try:
        from torch._higher_order_ops.utils import _in_hop_compile
    except ImportError:  # torch before 2.13 does not say what it compiles for
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
