"""aten::_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float scale_growth_factor,
    float scale_backoff_factor, int growth_interval) -> Tensor(a!)

A single program instance updates the scale, and nothing is read back. The scale shrinks if found_inf is not
0. It grows after growth_interval successful steps, unless it would become infinite.
"""

import triton
import triton.language as tl

OVERLOADS = ("aten::_amp_update_scale_",)
DTYPES = ("float32",)


@triton.jit
def kernel_update_scale(
    scale_ptr, tracker_ptr, found_inf_ptr, growth: tl.float64, backoff: tl.float64, growth_interval
):
    """Update the scale and the growth tracker.

    Args:
        scale_ptr: One element, read and written.
        tracker_ptr: One element, the successful steps since the last change of the scale, read and written.
        found_inf_ptr: One element, not 0 if a gradient overflowed, read.
        growth: Factor in fp64 by which the scale grows.
        backoff: Factor in fp64 by which the scale shrinks.
        growth_interval: Number of successful steps after which the scale grows.
    """
    scale = tl.load(scale_ptr).to(tl.float64)
    successful = tl.load(tracker_ptr) + 1
    overflowed = tl.load(found_inf_ptr) != 0
    grows = successful == growth_interval
    grown = (scale * growth).to(tl.float32)
    grown = tl.where(tl.abs(grown) < float("inf"), grown, scale.to(tl.float32))
    next_scale = tl.where(grows, grown, scale.to(tl.float32))
    tl.store(scale_ptr, tl.where(overflowed, (scale * backoff).to(tl.float32), next_scale))
    tl.store(tracker_ptr, tl.where(overflowed | grows, 0, successful).to(tracker_ptr.dtype.element_ty))


def wrapper(self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval):
    kernel_update_scale[(1,)](
        self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval, num_warps=1
    )
    return self
