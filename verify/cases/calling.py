"""Write callers.json, which lists the OpInfo operators that call each overload.

python -m verify.cases.calling
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from torch._ops import OpOverload

from traces.overloads import bind, kind, name_of
from verify.cases.callers import FILE, MOST_CALLERS, run
from verify.cases.samples import operators, samples_of

_GLANCED = 4  # samples that are run for each operator to record its calls


def main() -> None:
    """Write callers.json."""
    calls: dict[str, set[str]] = {}
    for operator in operators():
        seen: set[str] = set()

        def see(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], seen: set[str] = seen) -> None:
            if kind(op, bind(op, args, kwargs)) == "compute":
                seen.add(name_of(op))

        for function, args, kwargs in samples_of(operator, torch.float32, _GLANCED):
            run(function, args, kwargs, see)
        calls[operator] = seen
    callers: dict[str, list[str]] = {}
    for operator in sorted(calls, key=lambda name: (len(calls[name]), name)):
        for overload in calls[operator]:
            callers.setdefault(overload, []).append(operator)
    limited = {overload: names[:MOST_CALLERS] for overload, names in sorted(callers.items())}
    FILE.write_text(json.dumps(limited, indent=0) + "\n")
    sys.stderr.write(f"{len(limited)} overloads, called for {len(calls)} operators\n")


if __name__ == "__main__":
    main()
