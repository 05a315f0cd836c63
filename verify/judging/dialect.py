"""Check if a kernel file conforms to a platform's dialect; every command uses this module for the same reasons.

A file outside the dialect is a COMPILE_ERROR. It is a CHEAT only if the toolkit's own dialect also forbids the
construct, because it could pass a test without computing. An honest kernel that uses features a chip does not
support does not cheat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from verify.contract.kernel_file import KernelFile
from verify.judging.job import Job
from verify.linking import link
from verify.lint import Profile, Violation, lint, load_profile
from verify.lint.gravity import could_cheat, gravest
from verify.lint.profile import ANY_FILE, DEFAULT
from verify.outcome import Outcome, Verdict
from verify.platforms import Platform


def violations(kernel: KernelFile, profile: Profile) -> list[Violation]:
    """Return the dialect violations in a kernel file; unsupported dtypes are not violations."""
    known = dict.fromkeys((*profile.dtypes, *load_profile(DEFAULT).dtypes))
    return lint(kernel.source, replace(profile, dtypes=tuple(known)), written=kernel.written)


def limited(kernel: KernelFile, profile: Profile) -> KernelFile:
    """Return the kernel file without the dtypes that a dialect does not support."""
    dtypes = tuple(dtype for dtype in kernel.dtypes if dtype in profile.dtypes)
    return kernel if dtypes == kernel.dtypes else replace(kernel, dtypes=dtypes)


def judged(broken: Sequence[Violation], source: str, profile: Profile) -> tuple[Outcome, Violation]:
    """Return the outcome for a text with violations, and its gravest violation.

    The toolkit's own dialect knows only the library's blocks, which are the last entry of a profile's and a
    kernel's blocks.
    """
    first, cheats = gravest(broken)
    base_dialect = ANY_FILE if profile.bare else DEFAULT
    if cheats and profile.name != base_dialect:
        allowed = load_profile(base_dialect).with_calls(profile.calls).with_blocks(*profile.blocks[-1:])
        cheats = any(could_cheat(violation) for violation in lint(source, allowed))
    return (Outcome.CHEAT if cheats else Outcome.COMPILE_ERROR), first


def first_outside(kernel: KernelFile, platform: Platform) -> Violation | None:
    """Return the gravest violation in a kernel file on a platform, or None if it conforms to the dialect."""
    broken = _broken(kernel, platform.lint, platform.sha256)
    return broken[1] if broken is not None else None


def refusal(job: Job, platform: Platform) -> Verdict | None:
    """Return the verdict for every case of a job if one of its files does not conform to the dialect, else None."""
    if job.dialect in (None, platform.lint) or "lint" in job.off:
        return None
    copies = (job.copy,) if job.copy is not None else ()
    for kernel in dict.fromkeys((job.kernel, *copies, *job.reached)):
        broken = _broken(kernel, platform.lint, platform.sha256)
        if broken is not None:
            outcome, first = broken
            detail = f"not in the dialect of {platform.name}: {kernel.path.name}: {first}"
            return Verdict("", outcome, detail, detail, layer="lint", rule=first.rule)
    return None


@lru_cache(maxsize=4096)
def _broken(kernel: KernelFile, dialect: str, state: str) -> tuple[Outcome, Violation] | None:
    """Return the outcome and the gravest violation; `state` is the digest of the platform's file, for the cache."""
    profile = load_profile(dialect).with_calls(overload for overload, _ in kernel.callees)
    broken = violations(kernel, profile)
    return judged(broken, link(kernel.written, now=kernel.blocks[-1:]), profile) if broken else None
