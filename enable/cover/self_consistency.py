"""Which operators of the library a kernel may call (`--self-consistent`), and what a change of the library would break.

Kernels that call each other are a graph; the library refuses a cycle wherever it is read (generate/kernel_library.py).
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
    """What the kernel of the overloads `serves` may call: verified kernels of the library that do not reach back to it.

    Verified: the workspace has verdicts of today's judge on this very kernel, and for some dtype all of them pass.
    """
    if not workspace.root.is_dir():
        return frozenset()
    store = workspace.verdicts()
    try:
        standings = store.standings(platform)
    finally:
        store.close()
    found = set()
    for overload in {o for kernel in library for o in kernel.overloads}:
        match = library.match(overload)
        if match is None or not match.plan.direct:
            continue
        reached = {o for k in (match.kernel, *match.kernel.reached) for o in k.overloads}
        verified = standings[match.kernels, overload].verified and not untried(match, standings)
        if reached.isdisjoint(serves) and verified:
            found.add(overload)
    return frozenset(found)


def kernels_of(match: Match | None) -> tuple[str, ...]:
    """What verdicts on it are kept by; empty for no kernel."""
    return match.kernels if match is not None else ()


def broken_calls(before: Library, after: Library) -> str:
    """What a change of the library would leave without a kernel although other kernels call it; '' if nothing."""
    called = {o for kernel in after for o in kernel.calls}
    lost = sorted(o for o in called if after.kernel(o) is None)
    new = [o for o in lost if before.kernel(o) is not None or o not in {c for k in before for c in k.calls}]
    if not new:
        return ""
    callers = ", ".join(after.callers(new))
    return f"{callers} would call {', '.join(new)}, which no kernel would serve"
