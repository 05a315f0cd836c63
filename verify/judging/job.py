"""Describe a unit of work for the judge: cases that test one kernel on one overload."""

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
from verify.judging.conditions import Conditions

RUN = "run"  # layer without which cases are only compiled
REPEATS = 3  # cases of an overload that are repeated before it counts as passed
MAX_REPEATED = 12_000  # elements in a case that is run four times


@dataclass(frozen=True)
class Job:
    """Cases that test one kernel on one overload.

    Attributes:
        plan: How the overload is derived from the kernel.
        kernel: The kernel file.
        cases: Cases to judge.
        copy: The library's `aten::copy_`, if the plan may need it.
        allowed: ATen operators that the wrapper may call besides memory and views.
        strict: Results need ATen's strides.
        repeats: How many cases to repeat, in other orders and with other contents.
        off: Layers that are switched off.
        first: Stop at the first failed case.
        dialect: Dialect that the files are known to conform to, "" for none. Another platform's dialect is
            checked first (verify/judging/dialect.py). None if the dialect was checked before.
        marks: Parts of kernels that the platform's dialect forbids, with a description of each. A call whose
            compiled programs contain one is a COMPILE_ERROR.
        needed: Function that is called with each case's id and returns False if it need not be judged any more.
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
    marks: tuple[tuple[str, str], ...] = ()
    needed: Callable[[Job, str], bool] | None = None

    def conditions(self, case: str, sandbox: str) -> Conditions:
        """Return the further conditions that the verdict on a case depends on."""
        return Conditions(self.strict, self.allowed, self.off, case in self.repeated, sandbox)

    @cached_property
    def repeated(self) -> frozenset[str]:
        """Ids for the cases to repeat; earlier verdicts have no influence.

        These are the first case that has elements, and then the longest and largest ones that are still quick,
        because they have several program instances.
        """
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
        """Identity of everything that takes part.

        The tuple has the base overload, the key of each kernel file, and the key of each file that is reached by
        calls, together with the overload that it answers.
        """
        files = (self.kernel, *((self.copy,) if self.copy else ()))
        answers = {f"{o}={k.key}" for file in (*files, *self.reached) for o, k in file.callees}
        return (self.plan.base, *(k.key for k in files), *sorted(answers))

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """Files that a child loads.

        `sources` has the text of each file by role, and `calls` has, for each file, the roles that answer its
        calls.
        """
        roles = {k: role for role, k in self.roles.items()}
        return {
            "sources": {role: k.source for role, k in self.roles.items()},
            "calls": {role: {o: roles[callee] for o, callee in k.callees} for role, k in self.roles.items()},
        }

    @property
    def roles(self) -> dict[str, KernelFile]:
        """Kernel files by role: `kernel`, `copy`, and `callee0`, `callee1` and so on."""
        files = {"kernel": self.kernel} | ({"copy": self.copy} if self.copy is not None else {})
        return files | {f"callee{i}": kernel for i, kernel in enumerate(self.reached)}

    @property
    def reached(self) -> tuple[KernelFile, ...]:
        """Kernel files that the kernel and the copy call, directly or indirectly, each once."""
        return tuple(dict.fromkeys((*self.kernel.reached, *(self.copy.reached if self.copy else ()))))


def _sizes(case: Case) -> tuple[int, int]:
    """Return the element count over all tensors, and the largest dimension size."""
    return sum(map(math.prod, case.shapes)), max((n for shape in case.shapes for n in shape), default=1)
