"""What is to be judged: cases of one overload for one kernel."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from verify.cases.case import Case
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.verdicts import Conditions

RUN = "run"  # the layer without which cases are only compiled
REPEATS = 3  # cases of an overload that are run again, by whoever says that it passed
MAX_REPEATED = 12_000  # elements of a case that is run four times


@dataclass(frozen=True)
class Job:
    """Cases of one overload for one kernel.

    Attributes:
        copy: The library's `aten::copy_`, where the plan may need it.
        allowed: What the wrapper may ask of ATen besides memory and views.
        strict: Results need the strides that ATen gives.
        repeats: Number of cases that are run again, in other orders and with other contents.
        off: Layers that are not asked.
        dialect: The dialect that the files are known to be of, "" for none: another platform's is asked first
            (verify/judging/dialect.py). None if the dialect was asked before.
        first: The cases after one that fails are not run.
        needed: Is asked of the id of each case whether it is still to be judged.
    """

    plan: Plan
    kernel: KernelFile
    cases: tuple[Case, ...]
    copy: KernelFile | None = None
    allowed: frozenset[str] = frozenset()
    strict: bool = True
    repeats: int = 0
    off: frozenset[str] = frozenset()
    first: bool = False
    dialect: str | None = None
    needed: Callable[[Job, str], bool] | None = None

    def conditions(self, case: str, sandbox: str) -> Conditions:
        """Return what else the verdict on a case depends on."""
        return Conditions(self.strict, self.allowed, self.off, case in self.repeated, sandbox)

    @cached_property
    def repeated(self) -> frozenset[str]:
        """Ids of the cases that are run again, whichever of them was judged before: the first that has elements, and
        the longest and largest ones that a child is quickly done with, since these have several programs."""
        if not self.repeats:
            return frozenset()
        sizes = {case.id: _sizes(case) for case in self.cases}
        filled = [name for name, (elements, _) in sizes.items() if 0 < elements <= MAX_REPEATED]
        longest = sorted(filled, key=lambda name: sizes[name][1], reverse=True)
        largest = sorted(filled, key=lambda name: sizes[name], reverse=True)
        ranked = itertools.chain(filled[:1], *zip(longest, largest, strict=True))
        return frozenset(list(dict.fromkeys(ranked))[: self.repeats])

    @property
    def kernels(self) -> tuple[str, ...]:
        """What takes part: the base overload, the sha256 of each kernel file, and of each that is reached by calls,
        with the overload that it answers."""
        files = (self.kernel, *((self.copy,) if self.copy else ()))
        answers = {f"{o}={k.key}" for file in (*files, *self.reached) for o, k in file.callees}
        return (self.plan.base, *(k.key for k in files), *sorted(answers))

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """What a child loads: `sources`, the text of each file by its role, and `calls`, by which roles what a file
        calls is answered."""
        found = {"kernel": self.kernel} | ({"copy": self.copy} if self.copy is not None else {})
        found |= {f"callee{i}": k for i, k in enumerate(self.reached)}
        roles = {k: role for role, k in found.items()}
        return {
            "sources": {role: k.source for role, k in found.items()},
            "calls": {role: {o: roles[callee] for o, callee in k.callees} for role, k in found.items()},
        }

    @property
    def reached(self) -> tuple[KernelFile, ...]:
        """The kernel files that the kernel and the copy call, and that these call, each once."""
        return tuple(dict.fromkeys((*self.kernel.reached, *(self.copy.reached if self.copy else ()))))


def _sizes(case: Case) -> tuple[int, int]:
    """Elements of all tensors of a case, and the largest size of a dimension."""
    return sum(map(math.prod, case.shapes)), max((n for shape in case.shapes for n in shape), default=1)
