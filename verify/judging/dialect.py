"""Whether a kernel file is of a platform's dialect. Every command asks this module, so all give one reason.

A file outside of the dialect is a COMPILE_ERROR. It is a CHEAT only if the toolkit's own dialect forbids, too, what
could pass a test without computing: an honest kernel that a chip has no room for does not cheat.
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
    """Return what in a kernel file is not of a dialect; dtypes that the dialect has no room for are not."""
    known = dict.fromkeys((*profile.dtypes, *load_profile(DEFAULT).dtypes))
    return lint(kernel.source, replace(profile, dtypes=tuple(known)))


def limited(kernel: KernelFile, profile: Profile) -> KernelFile:
    """Return the kernel file without the dtypes that a dialect has no room for."""
    dtypes = tuple(dtype for dtype in kernel.dtypes if dtype in profile.dtypes)
    return kernel if dtypes == kernel.dtypes else replace(kernel, dtypes=dtypes)


def judged(broken: Sequence[Violation], source: str, profile: Profile) -> tuple[Outcome, Violation]:
    """Return the outcome of a text with violations, and the gravest of them.

    The toolkit's own dialect knows the library's blocks alone, which are the last of a profile's and of a kernel's.
    """
    first, cheats = gravest(broken)
    own = ANY_FILE if profile.bare else DEFAULT
    if cheats and profile.name != own:
        allowed = load_profile(own).with_calls(profile.calls).with_blocks(*profile.blocks[-1:])
        cheats = any(could_cheat(violation) for violation in lint(source, allowed))
    return (Outcome.CHEAT if cheats else Outcome.COMPILE_ERROR), first


def first_outside(kernel: KernelFile, platform: Platform) -> Violation | None:
    """Return the gravest violation of a kernel file on a platform; None if it is of the dialect."""
    broken = _broken(kernel, platform.lint, platform.sha256)
    return broken[1] if broken is not None else None


def refusal(job: Job, platform: Platform) -> Verdict | None:
    """Return the verdict on every case of a job if a file that takes part is not of the platform's dialect."""
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
    """state: digest of the platform's file, which may state the dialect."""
    profile = load_profile(dialect).with_calls(overload for overload, _ in kernel.callees)
    broken = violations(kernel, profile)
    return judged(broken, link(kernel.written, now=kernel.blocks[-1:]), profile) if broken else None
