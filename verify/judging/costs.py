"""Limit a call's costs in relation to its work.

The checks cover time that its accesses do not explain, memory that its tensors do not need, and grids that would
exceed the limits of a launch for larger tensors.
"""

from __future__ import annotations

import math
import time

from traces.values import Packed, unpack
from verify.cases.case import Expected, call_aten
from verify.judging.problems import Problem
from verify.judging.reply import Reply
from verify.operators import elementwise
from verify.outcome import Outcome

# Seconds in the interpreter, which takes some milliseconds per program instance; generous by two orders of
# magnitude.
FREE_SECONDS = 0.15
SECONDS_AN_ACCESS, SECONDS_A_LANE = 1.2e-3, 2e-6
SLOWER = 20_000  # multiple of ATen's own time, for definitions that take long
FREE_BYTES = 64 << 20
MORE_BYTES = 64  # multiple of the bytes in arguments and results
MOST_PROGRAMS = 65_535  # limit for the second and third dimension of a grid (verify/child/simulator.py)
MANY = 1 << 16  # minimum elements of a call that shows how a grid grows
USUAL = 1 << 27  # elements in a tensor with some hundred megabytes


def too_costly(overload: str, expected: Expected, got: Packed, reply: Reply) -> list[Problem]:
    """Return problems with a call's costs.

    Args:
        overload: Overload name.
        expected: ATen's answer.
        got: The call's results.
        reply: Reply from the interpreting child.
    """
    problems = []
    allowed = FREE_SECONDS + SECONDS_AN_ACCESS * reply.accessed + SECONDS_A_LANE * reply.lanes
    if reply.seconds > allowed and reply.seconds > allowed + SLOWER * (aten_seconds := _atens_seconds(expected)):
        text = f"kernels computed for {reply.seconds:.1f} s in the interpreter with {reply.accessed} loads and stores, "
        problems.append(Problem(Outcome.TIMEOUT, "cost", f"{text}where ATen takes {aten_seconds:.1g} s", rule="time"))
    needed = sum(group.nbytes for packed in (expected.before, got) for group in packed.groups)
    if reply.allocated > FREE_BYTES + MORE_BYTES * needed:
        text = f"the wrapper allocated {reply.allocated:,} bytes for a call whose tensors take {needed:,}"
        problems.append(Problem(Outcome.RUNTIME_ERROR, "cost", text, rule="memory"))
    sizes = [math.prod(ref.shape) for ref in expected.before.tensors if len(ref.shape) <= 1]
    flat = len(sizes) == len(expected.before.tensors) and elementwise(overload)
    if flat and max(sizes, default=0) >= MANY and reply.widest * USUAL > MOST_PROGRAMS * max(sizes):
        text = (
            f"the grid has {reply.widest:,} programs in y or z for {max(sizes):,} elements, and no launch has more than"
        )
        text = f"{text} {MOST_PROGRAMS:,} there: let it grow in x"
        problems.append(Problem(Outcome.RUNTIME_ERROR, "cost", text, rule="grid"))
    return problems


def _atens_seconds(expected: Expected) -> float:
    """Return the seconds that ATen takes for the call, as the best of three runs."""
    timings = []
    for _ in range(3):
        arguments = unpack(expected.before)
        start = time.perf_counter()
        call_aten(expected.overload, arguments, expected.philox)
        timings.append(time.perf_counter() - start)
    return min(timings)
