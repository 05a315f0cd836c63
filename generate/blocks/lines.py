"""Points on the line between two ends."""

import triton
import triton.language as tl


@triton.jit
def line(i, start, end, steps, half):
    """Point i, from `start` on where it is before `half` and else back from the end, at `steps`."""
    i = i.to(steps.dtype)
    step = (end - start) / steps
    return tl.where(i < half, start + step * i, end - step * (steps - i))


@triton.jit
def whole_line(i, start, end, steps, half):
    """The same between ends that are cut to integers."""
    return line(i, start.to(tl.int64).to(steps.dtype), end.to(tl.int64).to(steps.dtype), steps, half)
