"""Find the overloads of a trace that need a kernel, and their kernels in a library."""

from __future__ import annotations

from collections import defaultdict

from generate.kernel_library import Library, Match
from traces import UserError
from traces.overloads import resolve
from traces.store import Trace
from traces.subgraphs import subgraph_of
from verify.comparison.laws import judged_by
from verify.contract.derive import functional_base


def needed_overloads(trace: Trace) -> frozenset[str]:
    """Return a trace's overloads that need a kernel, and the bases from which their kernels derive."""
    overloads = [o for o, kind in overloads_of(trace) if needs_kernel(o, kind)]
    return frozenset((*overloads, *(functional_base(o) for o in overloads if is_known(o))))


def match_overloads(trace: Trace, library: Library) -> dict[str, Match | None]:
    """Return the kernel, or None, for each overload that needs one and that this torch has."""
    return {o: library.match(o) for o, kind in overloads_of(trace) if needs_kernel(o, kind) and is_known(o)}


def needs_kernel(overload: str, kind: str) -> bool:
    """Return True if such calls need a kernel: they compute, or draw random numbers that a law can judge."""
    return kind == "compute" or (kind == "random" and is_known(overload) and bool(judged_by(overload)))


def is_known(overload: str) -> bool:
    """Return True if this torch has the overload, directly or as a subgraph of its operators.

    A user's custom operators have no reference here.
    """
    try:
        resolve(overload)
    except UserError:
        return False
    return overload.startswith("aten::") or subgraph_of(overload) is not None


def overloads_of(trace: Trace) -> list[tuple[str, str]]:
    """Return the trace's (overload, kind) pairs, compute first, then by number of calls."""
    calls: dict[tuple[str, str], int] = defaultdict(int)
    for signature in trace.asked:
        calls[signature.overload, signature.kind] += signature.calls
    kinds = ["compute", "random", "memory", "view"]
    return sorted(calls, key=lambda k: (kinds.index(k[1]), -calls[k], k[0]))
