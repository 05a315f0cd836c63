"""How an overload is served: by which kernel files, and for which dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from enable.serve.arguments import SPARSE
from verify.cases.kinds import Judged
from verify.contract.derive import Plan

NOT_VERIFIED = "not verified"
LISTS = "the kernel's"
FAILED = "its kernel failed"
NO_FLOATS = ""  # stands for the calls that have no floating dtype


@dataclass(frozen=True)
class Entry:
    """How one overload is served.

    kernel: the kernel file. copy: the file of the `aten::copy_` kernel, where the plan needs it. label: the kernel file
    as reports show it. listed: the dtypes that the kernel claims, by name, and SPARSE if it takes sparse tensors.
    verified: the floating ones of these for which it may be used, NO_FLOATS where it may be for calls without any, and
    SPARSE. calls: of each kernel file that calls others, which files answer which overloads. draws: the kernel is given
    a key and counter of the call's generator. lawless: no verdict speaks for calls of it that draw, so that it serves
    the others. failures: what verdicts say against it, by dtype as in verified. independent: on how many independent
    cases it rests. kinds: of the calls among these (verify/cases/kinds.py). Both are None where nobody asked.
    texts: of these files, with the blocks that they import; what is not there is read from the file.
    """

    plan: Plan
    kernel: Path
    takes_out: bool
    copy: Path | None
    label: str
    listed: frozenset[str]
    verified: frozenset[str]
    calls: Mapping[Path, Mapping[str, Path]] = field(default_factory=dict)
    draws: bool = False
    lawless: bool = False
    failures: Mapping[str, str] = field(default_factory=dict)
    independent: int | None = None
    kinds: frozenset[str] | None = None
    texts: Mapping[Path, str] = field(default_factory=dict)

    @cached_property
    def judged(self) -> Judged | None:
        """The same kinds, to be asked about others."""
        return None if self.kinds is None else Judged(self.kinds)

    @cached_property
    def takes_integers(self) -> bool:
        """Whether the kernel claims a dtype that is not floating."""
        return any("float" not in dtype and "complex" not in dtype for dtype in self.listed - {SPARSE})

    def objection(self, dtypes: frozenset[str]) -> str:
        """Why it does not serve calls with these floating dtypes; empty if it does. SPARSE may be among them."""
        if SPARSE in dtypes - self.listed:
            return f"{LISTS} LAYOUTS do not list {SPARSE}"
        wanted = dtypes if dtypes - {SPARSE} else dtypes | {NO_FLOATS}
        unlisted, unverified = sorted(dtypes - self.listed), sorted(wanted - self.verified)
        if unlisted:
            return f"{LISTS} DTYPES do not list {', '.join(unlisted)}"
        failed = next((dtype for dtype in unverified if dtype in self.failures), None)
        if failed is not None:
            return f"{FAILED} {f'for {failed}' if failed else 'without floating dtypes'}: {self.failures[failed]}"
        if unverified and dtypes:
            return f"{NOT_VERIFIED} for {', '.join(unverified)}"
        return f"{NOT_VERIFIED} without floating dtypes" if unverified else ""
