"""Describe how an overload is served: its kernel files, dtypes and verdicts.

`enable/library.py` and exported packages create entries; the server reads them.
"""

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
NO_FLOATS = ""  # the key for calls without a floating dtype


@dataclass(frozen=True)
class Entry:
    """How one overload is served.

    Attributes:
        plan: How the overload derives from the kernel's.
        kernel: The kernel file.
        takes_out: True if the wrapper takes `out`.
        copy: The file with the `aten::copy_` kernel, if the plan needs one.
        label: The kernel file as reports show it.
        listed: Names of the dtypes that the kernel claims, and SPARSE if it takes sparse tensors.
        verified: The floating dtypes among `listed` for which the kernel may be used. Also NO_FLOATS if it may serve
            calls without a floating dtype, and SPARSE.
        calls: For each kernel file that calls other kernels, the file that answers each overload.
        draws: True if the kernel gets a key and counter from the call's generator.
        lawless: True if no verdict covers calls that draw random numbers; only the other calls are served then.
        failures: Verdicts against the kernel, by dtype as in `verified`.
        independent: The number of independent cases that support the verdict; None if it was not looked up.
        kinds: Kinds of calls among these cases (verify/cases/kinds.py); None if they were not looked up.
        texts: Source text by kernel file, with the linked blocks. A missing file is read from disk.
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
        """Return the judged kinds in a form that can be compared with other calls' kinds."""
        return None if self.kinds is None else Judged(self.kinds)

    @cached_property
    def takes_integers(self) -> bool:
        """Return True if the kernel claims a dtype that is not floating."""
        return any("float" not in dtype and "complex" not in dtype for dtype in self.listed - {SPARSE})

    def objection(self, dtypes: frozenset[str]) -> str:
        """Return why the entry does not serve calls with these floating dtypes (or SPARSE); empty if it does."""
        if SPARSE in dtypes - self.listed:
            return f"{LISTS} LAYOUTS do not list {SPARSE}"
        required = dtypes if dtypes - {SPARSE} else dtypes | {NO_FLOATS}
        unlisted, unverified = sorted(dtypes - self.listed), sorted(required - self.verified)
        if unlisted:
            return f"{LISTS} DTYPES do not list {', '.join(unlisted)}"
        failed = next((dtype for dtype in unverified if dtype in self.failures), None)
        if failed is not None:
            return f"{FAILED} {f'for {failed}' if failed else 'without floating dtypes'}: {self.failures[failed]}"
        if unverified and dtypes:
            return f"{NOT_VERIFIED} for {', '.join(unverified)}"
        return f"{NOT_VERIFIED} without floating dtypes" if unverified else ""
