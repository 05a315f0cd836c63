"""Why a kernel is slow, in words: its times against the limit, what it moves, and what its launches take of the GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from generate.kernel_search.measurement import ShapeTimes, TimedDevice, TimedLaunch, TimedShape
from generate.kernel_search.occupancy import occupancy

NEAR = 0.8  # of the limit: little is left to gain
LOW = 0.5  # of a multiprocessor's warps: loads may have to wait for each other
SPLIT = 128  # elements for each multiprocessor, below which nothing is gained by more programs
MOST = 12  # shapes that are told, the farthest from the limit first


def told(device: TimedDevice, shapes: Sequence[TimedShape], times: Sequence[ShapeTimes], profile: str = "") -> str:
    """A paragraph for each shape. profile: what ncu says, or why it says nothing."""
    ranked = sorted(zip(shapes, times, strict=True), key=lambda pair: device.limit(pair[0]) / pair[1].median)
    lines = [line for shape, each in ranked[:MOST] for line in [*_of(device, shape, each), ""]]
    more = [f"And {len(ranked) - MOST} shapes that are nearer to the limit."] if len(ranked) > MOST else []
    return "\n".join([*lines, *more, profile]).strip()


def compiled(target: str, shapes: Sequence[TimedShape], launches: Sequence[Sequence[TimedLaunch]]) -> str:
    """The same where nothing can be timed: what each shape moves, and what its launches, compiled, take of a target."""
    lines = []
    for shape, found in zip(shapes, launches, strict=True):
        lines += [shape.name, f"  It moves {_moved(shape)}."]
        lines += [f"  {_taken(target, launch)}" for launch in found]
    return "\n".join(lines)


def _of(device: TimedDevice, shape: TimedShape, times: ShapeTimes) -> Iterator[str]:
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
    """`8.2 kB`, or `8.2 kB and does 0.5 GFLOP`."""
    size = f"{shape.nbytes / 1e6:.1f} MB" if shape.nbytes >= 1e6 else f"{shape.nbytes / 1e3:.1f} kB"
    return size + (f" and does {shape.flops / 1e9:.2f} GFLOP" if shape.flops else "")


def _bound(device: TimedDevice, shape: TimedShape) -> str:
    limit = device.limit(shape)
    if limit == device.launch:
        return "of a launch"
    return "of its bytes" if limit == shape.nbytes / device.bandwidth else "of its operations"


def _taken(target: str, launch: TimedLaunch) -> str:
    """What a launch takes of a multiprocessor."""
    held = occupancy(target, launch.warps, launch.registers, launch.shared)
    text = (
        f"{launch.kernel}: {launch.programs} programs of {launch.warps} warps, {launch.registers} registers, "
        f"{launch.spills} spilled, {launch.shared} bytes shared"
    )
    if held is None:
        return text
    return f"{text}; a multiprocessor holds {held.programs} at once, {held.share:.0%} of its warps (as {held.by} allow)"


def _launched(device: TimedDevice, launch: TimedLaunch) -> str:
    held = occupancy(device.target, launch.warps, launch.registers, launch.shared)
    text = _taken(device.target, launch)
    if held is None or not held.programs:
        return text
    waves = launch.programs / (held.programs * device.processors)
    return f"{text}, so {waves:.2f} waves on {device.processors} multiprocessors"


def reasons(device: TimedDevice, shape: TimedShape, times: ShapeTimes) -> Iterator[str]:
    """What keeps a call from its limit, a sentence each."""
    launches = times.launches
    if device.limit(shape) / times.median >= NEAR:
        yield "It is near the limit: little is left to gain here."
        return
    if times.host > times.median:
        yield f"It is launch-bound: the host takes {times.host:.0f} us to launch it, longer than the GPU to run it."
    if len(launches) > 1:
        yield f"It is {len(launches)} launches, each of which costs at least {device.launch:.1f} us."
    for launch in launches:
        held = occupancy(device.target, launch.warps, launch.registers, launch.shared)
        if launch.spills:
            yield f"{launch.kernel} spills {launch.spills} registers to memory: take smaller tiles, or more warps."
        if launch.programs < device.processors and shape.elements >= SPLIT * device.processors:
            yield (
                f"{launch.kernel} is {launch.programs} programs on {device.processors} multiprocessors: most are idle; "
                "take smaller tiles, or split what a program does."
            )
        elif held is not None and held.programs and launch.programs % (held.programs * device.processors):
            waves = launch.programs / (held.programs * device.processors)
            if waves < 2:
                yield f"{launch.kernel} is {waves:.2f} waves: the last one leaves multiprocessors idle."
        if held is not None and held.share < LOW:
            yield f"{launch.kernel} leaves {1 - held.share:.0%} of the warps unused, for want of {held.by}."
    if shape.nbytes / times.median < device.bandwidth / 2 and device.limit(shape) > device.launch and not shape.flops:
        yield "Less than half of the bandwidth is used: look at how wide and how contiguous loads and stores are."
