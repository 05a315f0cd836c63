"""Decide which kernels of a workspace are counted, served and exported: those that were accepted or tried in full.

A kernel file may be copied into `.enable/kernels/` by hand, or come with another user's workspace. It is judged like
any other, but a pass on some recorded calls does not make it part of the library.
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

    Three groups count: kernels of the packaged or a named base library, versions that this user's commands accepted on
    the platform, and files that passed a full trial on it in this workspace.
    """
    for kernel in of_layers(match):
        if kernel.key not in standings.tried and not is_accepted(kernel.path, standings.platform):
            platform = [] if standings.platform_typed == PLATFORM else ["--platform", standings.platform_typed]
            command = Workspace(kernel.path.parents[2]).command("verify", shown_path(kernel.path), *platform)
            return f"{UNTRIED}; try it: {command}"
    return ""


def outside_dialect(match: Match, platform: Platform) -> str:
    """Return why lint refuses a kernel that is not packaged; "" if it does not. A refused kernel runs nowhere."""
    job = match.job
    refused = refusal(job, platform) if job.dialect != DEFAULT else None
    return f"{refused.detail} ({refused.outcome} [lint])" if refused else ""


def of_layers(match: Match) -> list[KernelFile]:
    """Return the participating kernel files in layers above the base library."""
    return [kernel for kernel in files(match) if set(match.upper_layers) & set(kernel.path.parents)]


def files(match: Match) -> list[KernelFile]:
    """Return every kernel file that participates in serving an overload."""
    copies = [match.copy, *match.copy.reached] if match.copy is not None else []
    return list(dict.fromkeys((match.kernel, *match.kernel.reached, *copies)))
