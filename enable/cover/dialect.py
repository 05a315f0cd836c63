"""What of the library a platform's own dialect has room for: of its kernels, and of their dtypes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from generate.library import Match
from verify.contract.kernel_file import KernelFile
from verify.lint import lint, load_profile
from verify.lint.names import Violation
from verify.lint.profile import DEFAULT
from verify.platforms import Platform


def outside(kernels: Iterable[KernelFile], platform: Platform) -> dict[KernelFile, Violation]:
    """The first violation of each kernel file that has one; dtypes that it lists beyond the dialect's are none.

    The toolkit's own dialect is not asked again: whatever is in a library was held against that. Raises UserError for a
    dialect that is none.
    """
    if platform.lint == DEFAULT:
        return {}
    profile, found = load_profile(platform.lint), {}
    for kernel in dict.fromkeys(kernels):
        violations = lint(kernel.source, profile.with_calls(overload for overload, _ in kernel.callees))
        first = next((v for v in violations if v.rule != "dtypes"), None)
        if first is not None:
            found[kernel] = first
    return found


def spoken(matches: Mapping[str, Match | None], platform: Platform) -> dict[str, Match | None]:
    """The same, of kernels that list those of their dtypes alone that the dialect has."""
    if platform.lint == DEFAULT:
        return dict(matches)
    known = load_profile(platform.lint).dtypes

    def limited(kernel: KernelFile) -> KernelFile:
        return replace(kernel, dtypes=tuple(dtype for dtype in kernel.dtypes if dtype in known))

    return {o: m and replace(m, kernel=limited(m.kernel)) for o, m in matches.items()}


def outside_by_overload(matches: Mapping[str, Match | None], platform: Platform) -> dict[str, Violation]:
    """Of overloads: the first violation of a kernel file that takes part in serving it."""
    parts = {o: _files(m) for o, m in matches.items() if m is not None}
    broken = outside([kernel for files in parts.values() for kernel in files], platform)
    return {
        o: broken[first] for o, files in parts.items() for first in [next(filter(broken.get, files), None)] if first
    }


def _files(match: Match) -> list[KernelFile]:
    copies = [match.copy, *match.copy.reached] if match.copy is not None else []
    return [match.kernel, *match.kernel.reached, *copies]
