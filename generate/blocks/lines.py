"""Points on the line between two ends (linspace)."""

import triton
import triton.language as tl


@triton.jit
def line(i, start, end, steps, half):
    """Return point i of a line: counted from `start` if i < half, else backward from the end.

    The line has `steps` steps.
    """
    i = i.to(steps.dtype)
    step = (end - start) / steps
    return tl.where(i < half, start + step * i, end - step * (steps - i))


@triton.jit
def whole_line(i, start, end, steps, half):
    """Return `line` between ends that are truncated to integers."""
    return line(i, start.to(tl.int64).to(steps.dtype), end.to(tl.int64).to(steps.dtype), steps, half)
