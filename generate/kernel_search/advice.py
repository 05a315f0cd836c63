"""Explain in words why a kernel is slow: time against the limit, memory traffic, and GPU resources per launch.

The text goes into prompts and into the output of `enable tune --explain`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from generate.kernel_search.measurement import ShapeTimes, TimedDevice, TimedLaunch, TimedShape
from generate.kernel_search.occupancy import occupancy

NEAR = 0.8  # ratio of limit to time above which little is left to gain
LOW = 0.5  # share of a multiprocessor's warps below which too few warps may be there to hide load latency
SPLIT = 128  # elements per multiprocessor; with fewer, more programs gain nothing
MOST = 12  # maximum number of shapes in the text, the farthest from the limit first


def explain_times(
    device: TimedDevice, shapes: Sequence[TimedShape], times: Sequence[ShapeTimes], profile: str = ""
) -> str:
    """Return a paragraph for each shape.

    Args:
        device: GPU.
        shapes: Shapes.
        times: The kernel's times on these shapes, in the same order.
        profile: Output from ncu, or the reason why there is none.
    """
    ranked = sorted(zip(shapes, times, strict=True), key=lambda pair: device.limit(pair[0]) / pair[1].median)
    lines = [line for shape, each in ranked[:MOST] for line in [*_of(device, shape, each), ""]]
    more = [f"And {len(ranked) - MOST} shapes that are nearer to the limit."] if len(ranked) > MOST else []
    return "\n".join([*lines, *more, profile]).strip()


def compiled(target: str, shapes: Sequence[TimedShape], launches: Sequence[Sequence[TimedLaunch]]) -> str:
    """Return the text for a platform without timing: memory traffic per shape, and resources per launch on a target.

    Args:
        target: Target, such as sm_90.
        shapes: Shapes.
        launches: Compiled launches for each shape.
    """
    lines = []
    for shape, shape_launches in zip(shapes, launches, strict=True):
        lines += [shape.name, f"  It moves {_moved(shape)}."]
        lines += [f"  {_taken(target, launch)}" for launch in shape_launches]
    return "\n".join(lines)


def _of(device: TimedDevice, shape: TimedShape, times: ShapeTimes) -> Iterator[str]:
    """Yield the lines for a shape: time, limit, traffic, launches and reasons."""
    limit, took = device.limit(shape), times.median
    yield f"{shape.name}"
    yield (
        f"  {took:.1f} us; the limit is {limit:.1f} us ({_bound(device, shape)}): {min(1.0, limit / took):.0%} of it. "
        f"It moves {_moved(shape)}: {shape.nbytes / took / 1e3:.0f} GB/s"
        + (f", {shape.flops / took / 1e6:.1f} TFLOP/s." if shape.flops else ".")
    )
    for launch in times.launches:
        yield f"  {_launched(device, launch)}"
    for reason in reasons(device, shape, times):
        yield f"  - {reason}"


def _moved(shape: TimedShape) -> str:
    """Return bytes and operations as text: `8.2 kB`, or `8.2 kB and does 0.5 GFLOP`."""
    size = f"{shape.nbytes / 1e6:.1f} MB" if shape.nbytes >= 1e6 else f"{shape.nbytes / 1e3:.1f} kB"
    return size + (f" and does {shape.flops / 1e9:.2f} GFLOP" if shape.flops else "")


def _bound(device: TimedDevice, shape: TimedShape) -> str:
    """Return the resource that sets the limit."""
    limit = device.limit(shape)
    if limit == device.launch:
        return "of a launch"
    return "of its bytes" if limit == shape.nbytes / device.bandwidth else "of its operations"


def _taken(target: str, launch: TimedLaunch) -> str:
    """Return a launch's resources on a multiprocessor as text."""
    fit = occupancy(target, launch.warps, launch.registers, launch.shared)
    text = (
        f"{launch.kernel}: {launch.programs} programs of {launch.warps} warps, {launch.registers} registers, "
        f"{launch.spills} spilled, {launch.shared} bytes shared"
    )
    if fit is None:
        return text
    return f"{text}; a multiprocessor holds {fit.programs} at once, {fit.share:.0%} of its warps (as {fit.by} allow)"


def _launched(device: TimedDevice, launch: TimedLaunch) -> str:
    """Return a launch's resources and its number of waves as text."""
    fit = occupancy(device.target, launch.warps, launch.registers, launch.shared)
    text = _taken(device.target, launch)
    if fit is None or not fit.programs:
        return text
    waves = launch.programs / (fit.programs * device.processors)
    return f"{text}, so {waves:.2f} waves on {device.processors} multiprocessors"


def reasons(device: TimedDevice, shape: TimedShape, times: ShapeTimes) -> Iterator[str]:
    """Yield a sentence for each reason why a call does not reach its limit."""
    launches = times.launches
    if device.limit(shape) / times.median >= NEAR:
        yield "It is near the limit: little is left to gain here."
        return
    if times.host > times.median:
        yield f"It is launch-bound: the host takes {times.host:.0f} us to launch it, longer than the GPU to run it."
    if len(launches) > 1:
        yield f"It is {len(launches)} launches, each of which costs at least {device.launch:.1f} us."
    for launch in launches:
        fit = occupancy(device.target, launch.warps, launch.registers, launch.shared)
        if launch.spills:
            yield f"{launch.kernel} spills {launch.spills} registers to memory: take smaller tiles, or more warps."
        if launch.programs < device.processors and shape.elements >= SPLIT * device.processors:
            yield (
                f"{launch.kernel} is {launch.programs} programs on {device.processors} multiprocessors: most are idle; "
                "take smaller tiles, or split what a program does."
            )
        elif fit is not None and fit.programs and launch.programs % (fit.programs * device.processors):
            waves = launch.programs / (fit.programs * device.processors)
            if waves < 2:
                yield f"{launch.kernel} is {waves:.2f} waves: the last one leaves multiprocessors idle."
        if fit is not None and fit.share < LOW:
            yield f"{launch.kernel} leaves {1 - fit.share:.0%} of the warps unused, for want of {fit.by}."
    if shape.nbytes / times.median < device.bandwidth / 2 and device.limit(shape) > device.launch and not shape.flops:
        yield "Less than half of the bandwidth is used: look at how wide and how contiguous loads and stores are."
