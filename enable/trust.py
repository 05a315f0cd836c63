"""Which kernels of a workspace are counted, served and exported: those that were accepted, or tried in full.

A kernel file may come into `.enable/kernels/` by hand, or with a workspace of somebody else's. It is judged like any
other, but a pass on some recorded calls does not make it one of the library's.
"""

from __future__ import annotations

from enable.naming import shown_path
from enable.options import PLATFORM
from enable.workspace import Workspace
from generate.kernel_library import Match
from generate.versions import is_accepted
from verify.contract.kernel_file import KernelFile
from verify.judging.dialect import refusal
from verify.judging.standings import Standings
from verify.lint.profile import DEFAULT
from verify.platforms import Platform

OUTSIDE = "not in the dialect"
UNTRIED = "not tried in full by this judge"


def untried(match: Match, standings: Standings) -> str:
    """Return why a kernel does not count, with the command that tries it; "" if it counts.

    Packaged kernels count, and those of a library that the user names, a version that this user's commands accepted on
    the platform, and a file that passed a whole trial on it in this workspace.
    """
    for kernel in of_layers(match):
        if kernel.key not in standings.tried and not is_accepted(kernel.path, standings.platform):
            platform = [] if standings.platform_typed == PLATFORM else ["--platform", standings.platform_typed]
            command = Workspace(kernel.path.parents[2]).command("verify", shown_path(kernel.path), *platform)
            return f"{UNTRIED}; try it: {command}"
    return ""


def outside_dialect(match: Match, platform: Platform) -> str:
    """Return why lint refuses a kernel that is not packaged; "" if it does not. Such a kernel runs nowhere."""
    job = match.job
    refused = refusal(job, platform) if job.dialect != DEFAULT else None
    return f"{refused.detail} ({refused.outcome} [lint])" if refused else ""


def of_layers(match: Match) -> list[KernelFile]:
    """Return the kernel files that take part and lie in a layer above the base library."""
    return [kernel for kernel in files(match) if set(match.above) & set(kernel.path.parents)]


def files(match: Match) -> list[KernelFile]:
    """Return every kernel file that takes part in serving an overload."""
    copies = [match.copy, *match.copy.reached] if match.copy is not None else []
    return list(dict.fromkeys((match.kernel, *match.kernel.reached, *copies)))
