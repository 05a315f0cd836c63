"""Find the operators that a kernel may call (`--self-consistent`), and the calls that a library change would break.

Kernels that call each other form a graph. The library refuses a cycle whenever it is read
(generate/kernel_library.py).
"""

from __future__ import annotations

from collections.abc import Collection

from enable.trust import untried
from enable.workspace import Workspace
from generate.kernel_library import Library, Match
from verify.platforms import Platform


def callable_overloads(
    workspace: Workspace, library: Library, platform: Platform, serves: Collection[str]
) -> frozenset[str]:
    """Return the overloads that the kernel of `serves` may call: verified kernels that do not reach back to it.

    A kernel is verified if the workspace has verdicts from the current judge on it, and all of them pass for some
    dtype.
    """
    if not workspace.root.is_dir():
        return frozenset()
    store = workspace.verdicts()
    try:
        standings = store.standings(platform)
    finally:
        store.close()
    allowed = set()
    for overload in {o for kernel in library for o in kernel.overloads}:
        match = library.match(overload)
        if match is None or not match.plan.direct:
            continue
        reached = {o for k in (match.kernel, *match.kernel.reached) for o in k.overloads}
        verified = standings[match.kernels, overload].verified and not untried(match, standings)
        if reached.isdisjoint(serves) and verified:
            allowed.add(overload)
    return frozenset(allowed)


def kernels_of(match: Match | None) -> tuple[str, ...]:
    """Return the keys under which verdicts on the kernel are stored; empty for no kernel."""
    return match.kernels if match is not None else ()


def broken_calls(before: Library, after: Library) -> str:
    """Return which called overloads a library change would leave without a kernel, as text; "" if none."""
    called = {o for kernel in after for o in kernel.calls}
    lost = sorted(o for o in called if after.kernel(o) is None)
    newly_lost = [o for o in lost if before.kernel(o) is not None or o not in {c for k in before for c in k.calls}]
    if not newly_lost:
        return ""
    callers = ", ".join(after.callers(newly_lost))
    return f"{callers} would call {', '.join(newly_lost)}, which no kernel would serve"
