"""Compute coverage and verdicts from Python: the results of `enable coverage` and `enable verify` as objects."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated

from pydantic import Field

from enable import backend
from enable.cover.coverage import Coverage
from enable.cover.session import Session
from enable.cover.verification import SOURCES, VerifyRequest, check_request
from enable.cover.verifier import Verifier
from enable.options import PLATFORM, WORKSPACE
from enable.serve.graphs import described
from enable.workspace import Workspace
from traces.arguments import checked
from verify.judging.stages import MAX_EXTENDED, TrialResult

StrPath = str | PathLike[str]


@checked
def coverage(
    trace: StrPath,
    *,
    platform: str = PLATFORM,
    workspace: StrPath = WORKSPACE,
    library: StrPath | None = None,
) -> Coverage:
    """Replay a trace's calls on the library's kernels and return which overloads are covered.

    Each recorded overload is matched to a kernel. Its recorded calls are compiled, run in a sandbox and compared with
    ATen. The verdicts are kept in the workspace, so a second call runs only the changed cases.

    Args:
        trace: Name of a trace in the workspace, or the path to a trace.
        platform: Name of a platform, or the path to its YAML file.
        workspace: Directory that keeps traces, verdicts and refined kernels.
        library: Directory of kernel files that replaces the packaged library.

    Returns:
        The coverage, with a row for each overload; `as_json()` returns the document of `enable coverage --json`.

    Raises:
        UserError: The trace or the platform does not exist, or the trace is damaged.
    """
    with Session(Workspace(Path(workspace)), _path(library), platform) as session:
        return session.coverage(str(trace))


@checked
def verify(  # noqa: PLR0913 - one parameter per option of the command
    target: StrPath,
    *,
    op: str | None = None,
    platform: str = PLATFORM,
    cases: Sequence[str] = SOURCES,
    seed: int = 0,
    limit: Annotated[int, Field(ge=1)] = MAX_EXTENDED,
    workspace: StrPath = WORKSPACE,
    library: StrPath | None = None,
) -> TrialResult:
    """Judge a kernel: lint and compile it, run it in a sandbox, and compare its results with ATen.

    Args:
        target: A kernel file, or the name of an operator whose library kernel is judged.
        op: Overload (`aten::exp`) that a file without a schema implements.
        platform: Name of a platform, or the path to its YAML file.
        cases: Sources of cases: `opinfo`, `extended` (variants of the others), `traces` (the workspace's) and
            `trace:NAME`.
        seed: Seed for the extended cases.
        limit: Number of extended cases for each overload.
        workspace: Directory that keeps traces, verdicts and refined kernels.
        library: Directory of kernel files that replaces the packaged library.

    Returns:
        The result; `outcome` is "PASS" only if cases ran and all of them passed.

    Raises:
        UserError: The file, operator, platform or source of cases does not exist.
    """
    check_request(cases, ())
    request = VerifyRequest(tuple(cases), seed, limit=limit)
    with Verifier(Path(workspace), _path(library), platform, None, "full") as verifier:
        return verifier.verify(str(target), op, request)


def compiled_graphs() -> list[str]:
    """Return a line for each live graph of `torch.compile(model, backend="enablekit")`: its launches and cuts."""
    return list(described(backend.graphs))


def _path(library: StrPath | None) -> Path | None:
    """Return the library's path, or None."""
    return None if library is None else Path(library)
