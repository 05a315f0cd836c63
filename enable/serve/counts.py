"""Count the calls that kernels served, and those that they did not serve."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field


@dataclass
class Counts:
    """Counts of calls.

    Attributes:
        served: Calls served, by overload.
        kernels: Calls served, by kernel file.
        unserved: Calls not served, by overload and then by reason.
        unjudged: Served calls with a property on which the kernel was never judged, by overload and then by property.
    """

    served: Counter[str] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)
    unserved: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    unjudged: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))


def uncount(counter: Counter[str], counted: str) -> None:
    """Take back one count, and drop a zero entry."""
    counter[counted] -= 1
    if not counter[counted]:
        del counter[counted]
