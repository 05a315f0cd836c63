"""What a call costs beyond what its answer is worth: time that no access explains, memory that no tensor needs, and
grids that grow past what a launch can have."""

from __future__ import annotations

import math
import time

from traces.values import Packed, unpack
from verify.cases.case import Expected, call_aten
from verify.judging.problems import Problem
from verify.judging.reply import Reply
from verify.operators import elementwise
from verify.outcome import Outcome

# Seconds of the interpreter, which takes some milliseconds for a program: generous by two orders of magnitude.
FREE_SECONDS = 0.15
SECONDS_AN_ACCESS, SECONDS_A_LANE = 1.2e-3, 2e-6
SLOWER = 20_000  # times ATen's own seconds, for definitions that take long
FREE_BYTES = 64 << 20
MORE_BYTES = 64  # times what arguments and results take
MOST_PROGRAMS = 65_535  # in the second and third dimension of a grid (verify/child/simulator.py)
MANY = 1 << 16  # elements of a call that tells how a grid grows
USUAL = 1 << 27  # elements that a tensor of some hundred megabytes has


def too_costly(overload: str, expected: Expected, got: Packed, reply: Reply) -> list[Problem]:
    """What speaks against the call, each in a line. reply: to the call in the interpreter; got: its results."""
    found = []
    free = FREE_SECONDS + SECONDS_AN_ACCESS * reply.accessed + SECONDS_A_LANE * reply.lanes
    if reply.seconds > free and reply.seconds > free + SLOWER * (own := _atens_seconds(expected)):
        text = f"kernels computed for {reply.seconds:.1f} s in the interpreter with {reply.accessed} loads and stores, "
        found.append(Problem(Outcome.TIMEOUT, "cost", f"{text}where ATen takes {own:.1g} s", rule="time"))
    needed = sum(group.nbytes for packed in (expected.before, got) for group in packed.groups)
    if reply.allocated > FREE_BYTES + MORE_BYTES * needed:
        text = f"the wrapper allocated {reply.allocated:,} bytes for a call whose tensors take {needed:,}"
        found.append(Problem(Outcome.RUNTIME_ERROR, "cost", text, rule="memory"))
    sizes = [math.prod(ref.shape) for ref in expected.before.tensors if len(ref.shape) <= 1]
    flat = len(sizes) == len(expected.before.tensors) and elementwise(overload)
    if flat and max(sizes, default=0) >= MANY and reply.widest * USUAL > MOST_PROGRAMS * max(sizes):
        text = (
            f"the grid has {reply.widest:,} programs in y or z for {max(sizes):,} elements, and no launch has more than"
        )
        text = f"{text} {MOST_PROGRAMS:,} there: let it grow in x"
        found.append(Problem(Outcome.RUNTIME_ERROR, "cost", text, rule="grid"))
    return found


def _atens_seconds(expected: Expected) -> float:
    """How long ATen takes for the call, at best."""
    taken = []
    for _ in range(3):
        arguments = unpack(expected.before)
        start = time.perf_counter()
        call_aten(expected.overload, arguments, expected.philox)
        taken.append(time.perf_counter() - start)
    return min(taken)
