"""Register verified kernels under ATen, with exact undo.

    import enablekit

    with enablekit.use("cuda") as registration:
        train(model)
    print(registration.counts.served)

On a GPU and on `cpu`, a call that the kernels do not serve runs natively. On `sim` it raises NotImplementedError, or
with `fallback="cpu"` it runs on the CPU and is counted. A kernel serves a floating dtype if all its stored verdicts
for that dtype pass on the device's platform. `enable coverage`, `enable verify` and `enable refine` store verdicts in
the workspace. Kernels run in this process and are not confined.
"""

from __future__ import annotations

import atexit
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

import torch
from torch._ops import OpOverload

from capture import sim
from capture.host_fallback import HostFallback
from enable.chips import bring_up, is_chip
from enable.naming import full, shown_path
from enable.options import PLATFORM, WORKSPACE
from enable.serve.arguments import refusal, refusal_on_host
from enable.serve.backends import BACKENDS
from enable.serve.decisions import NO_KERNEL, OVERLAP, REFUSED, UNJUDGED
from enable.serve.entries import FAILED, LISTS, NO_FLOATS, NOT_VERIFIED, Entry
from enable.serve.native import native_way
from enable.serve.registration import Registration, form_with_tensor, innermost, under_dispatcher
from enable.serve.server import Server
from enable.serve.shortcuts import MISS
from enable.trust import OUTSIDE, UNTRIED, outside_dialect, untried
from enable.workspace import Workspace
from generate.kernel_library import Library, Match
from traces import UserError
from traces.arguments import checked
from traces.overloads import may_draw, name_of, resolve
from traces.program import program_name
from verify import platforms
from verify.comparison.laws import judged_by
from verify.judging.standings import Standing, Standings
from verify.platforms import Platform

__all__ = ["Registration", "Selection", "entry_of", "register", "select", "use"]

P = ParamSpec("P")
R = TypeVar("R")

JUDGED: Literal["judged"] = "judged"
_OUT_OF_TREE = "PrivateUse1"
COMPOSITE = "PyTorch makes it of other operators, whose gradients it needs"


@checked
def register(  # noqa: PLR0913 - each parameter selects kernels or limits their use
    device: str = "cuda",
    *,
    ops: Iterable[str] | None = None,
    unverified: bool = False,
    only: Literal["judged"] | None = None,
    library: Library | str | PathLike[str] | None = None,
    workspace: str | PathLike[str] | None = None,
    fallback: str | None = None,
    native: bool | None = None,
) -> Registration:
    """Let kernels answer ATen calls on a device until the registration is undone; the latest one takes precedence.

    Args:
        device: "cuda"; "sim"; a chip with a platform file, by the device type or the path of the file; or "cpu", which
            is for tests and runs kernels in Triton's interpreter.
        ops: Full names of overloads, such as `aten::mm`; None for all that may be served.
        unverified: Use kernels for every dtype that they claim, without a verdict.
        only: "judged" to serve only calls that resemble a passed case (verify/cases/kinds.py). None to serve and count
            the others, too.
        library: The kernels, or their directory; None for the workspace's, on top of the packaged ones.
        workspace: Directory that has the verdicts; `.enable` by default.
        fallback: On sim or a chip, "cpu" to run unserved calls on the CPU.
        native: True to require the C++ module that answers known calls, False to avoid it. None to use it if it can be
            built for the device.

    Returns:
        The registration, with counts of the served calls; `undo()` ends it.

    Raises:
        UserError: A device, an overload or an option does not exist, or no kernel may serve.
    """
    home = Workspace(Path(workspace or WORKSPACE))
    platform = bring_up(device)
    device = platform.device if is_chip(platform) else device
    _check(device, platform, fallback)
    if only and unverified:
        raise UserError(f"only {only!r} needs verdicts, and unverified kernels have none; leave out one of the options")
    kernels = library if isinstance(library, Library | None) else home.library(Path(library), platform)
    chosen = select(ops, unverified, kernels, home.root, device, platform)
    native_launcher = native_way(device, native, home.native)
    if device in BACKENDS:
        refuses = refusal_on_host if device == "cpu" else None
        server = Server(chosen.entries.get, device, only == JUDGED, native_launcher, refuses)
        on_host = HostFallback() if fallback else None
        return under_dispatcher(server, device, chosen.entries, chosen.left_out, on_host)
    server = Server(chosen.entries.get, "cpu", only == JUDGED, refuses=refusal_on_host)
    sim.install()
    executor = _Executor(server, chosen.left_out, innermost(sim.NAME), fallback)
    stack = ExitStack()
    stack.enter_context(sim.executing(executor, chosen.entries))
    return Registration(sim.NAME, server, chosen.left_out, stack.close, executor)


def _taking(other: Callable[P, Any]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Return a decorator that gives a function the parameters of another, for editors and `inspect.signature`."""

    def decorate(function: Callable[..., R]) -> Callable[P, R]:
        function.__signature__ = inspect.signature(other).replace(  # type: ignore[attr-defined]
            return_annotation=AbstractContextManager
        )
        return function

    return decorate


@_taking(register)
@contextmanager
def use(*args: Any, **options: Any) -> Iterator[Registration]:
    """Let kernels answer ATen calls on a device inside a `with` block; the registration is undone as the block ends.

    The arguments are those of `register`.
    """
    with _until_undone(register(*args, **options)) as registration:
        yield registration


def drawing_on_cpu(library: Library, workspace: Path) -> Callable[[], AbstractContextManager[Registration]]:
    """Return a function that makes contexts in which drawing kernels also answer on the CPU, as on sim.

    From the same seed, the CPU and sim then draw the same numbers. Unverified kernels take part, too, because the CPU
    calls other operators, for example bernoulli_ in place of native_dropout.
    """
    drawing = {o: e for o, e in select(None, True, library, workspace).entries.items() if e.draws}
    standings = _standings(Workspace(workspace), platforms.load(platforms.of_device("cpu")))
    entries = {o: e for o, e in drawing.items() if not untried(_match(library, o), standings)}
    server = Server(entries.get, "cpu")
    return lambda: _until_undone(under_dispatcher(server, "cpu", entries, {}))


@contextmanager
def _until_undone(registration: Registration) -> Iterator[Registration]:
    """Yield the registration and undo it at the end, or as the interpreter exits while its modules still exist."""
    atexit.register(registration.undo)
    try:
        yield registration
    finally:
        atexit.unregister(registration.undo)
        registration.undo()


class NothingVerified(UserError):
    """Raised if no kernel may serve, because the library has no verified one."""


@dataclass(frozen=True)
class Selection:
    """The result of `select`.

    Attributes:
        entries: How each overload is served.
        left_out: Overloads that have a kernel but are not served, with the reason.
    """

    entries: Mapping[str, Entry]
    left_out: Mapping[str, str]


def select(
    ops: Iterable[str] | None = None,
    unverified: bool = False,
    library: Library | None = None,
    workspace: Path | None = None,
    device: str = sim.NAME,
    platform: Platform | None = None,
) -> Selection:
    """Return the overloads that kernels may serve.

    Args:
        ops: Full names of overloads; None for all.
        unverified: Use kernels for every dtype that they claim, without a verdict.
        library: The kernels; None for the workspace's.
        workspace: Directory that has the verdicts; `.enable` by default.
        device: Device name, as for `register`.
        platform: The platform whose verdicts count; by default the device's.

    Returns:
        The entries, and the overloads that are left out.

    Raises:
        UserError: No overload may be served, or `ops` names one that may not.
    """
    home = Workspace(workspace or WORKSPACE)
    platform = platform or platforms.load(platforms.of_device(device))
    library = library or home.library(None, platform)
    matches = _all(library) if ops is None else {name: _match(library, name) for name in map(_full, ops)}
    standings = None if unverified else _standings(home, platform)
    entries, left_out = {}, {}
    for overload, match in matches.items():
        outside = outside_dialect(match, platform)
        standing = standings[match.kernels, overload] if standings is not None else Standing()
        fit = match.kernel.listed | {NO_FLOATS} if unverified else standing.verified
        if _is_composite(overload, device):
            left_out[overload] = COMPOSITE
        elif outside:
            left_out[overload] = outside
        elif not fit:
            left_out[overload] = f"{FAILED}: {standing.failure}" if standing.failed else NOT_VERIFIED
        elif standings is not None and (why := untried(match, standings)):
            left_out[overload] = why
        else:
            entry = entry_of(match, fit)
            if not unverified:
                entry = replace(
                    entry,
                    lawless=not judged_by(overload) and may_draw(overload),
                    failures=standing.failures,
                    independent=standing.independent,
                    kinds=standing.kinds,
                )
            entries[overload] = entry
    if left_out and (ops is not None or not entries):
        overload, reason = next(iter(left_out.items()))
        if ops is None:
            raise NothingVerified(f"no kernel is verified in {home.root}; {_remedy('--all', platform)}")
        raise UserError(_refusal(overload, reason, home, platform))
    return Selection(entries, left_out)


def known_failures(
    overloads: Iterable[str], library: Library, workspace: Path, platform: Platform
) -> Mapping[str, str]:
    """Return what failed in the verdicts on these overloads, by overload; those without a failure are missing."""
    standings = _standings(Workspace(workspace), platform)
    rows = {overload: standings[_match(library, overload).kernels, overload] for overload in overloads}
    return {overload: standing.failure for overload, standing in rows.items() if standing.failed}


class _Executor:
    """Answers the calls on `sim`: by the server, then by the previous registration, then by the CPU if allowed."""

    def __init__(
        self, server: Server, left_out: Mapping[str, str], outer: sim.Executor | None, fallback: str | None
    ) -> None:
        self._server, self._left_out = server, left_out
        self._next = outer or (sim.on_cpu if fallback else self._missing)

    def __call__(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        form = form_with_tensor(op, args)
        if form is not None and self._server.reason(op, args, kwargs) == NO_KERNEL:
            return self(*form, kwargs)
        answer = self._server.answer(op, args, kwargs)
        return self._next(op, args, kwargs) if answer is MISS else answer

    def _missing(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Raise the error for an unserved call: ATen's own, or NotImplementedError with a remedy."""
        name = name_of(op)
        reason = self._left_out.get(name) or self._server.reason(op, args, kwargs)
        if reason == NO_KERNEL:
            return sim.missing(op, args, kwargs)
        error: BaseException | None = refusal_on_host(op, args, kwargs)
        # an empty reason means that the wrapper declined the call
        if error is None and reason in (REFUSED, OVERLAP, ""):
            error = refusal(op, args, kwargs) or self._server.declined
        if isinstance(error, KeyError):  # the wrapper does not know the dtype
            reason = f"its wrapper takes no such arguments: {error!r}"
        elif error is not None:
            raise error
        remedy = _remedy(name, platforms.load(platforms.of_device(sim.NAME)))
        if reason.startswith((UNTRIED, OUTSIDE)):
            remedy = "or leave the kernel out"
        if reason == OVERLAP:
            remedy = "clone one of the tensors"
        elif reason.startswith(LISTS):
            remedy = f"extend its kernel: {program_name()} library show {name}"
        if reason.startswith(UNJUDGED.format("")):
            program = program_name()
            remedy = f"record such calls and judge them: {program} capture, {program} coverage; or omit only='judged'"
        raise NotImplementedError(f"{name}: device {sim.NAME} may not use its kernel: {reason}; {remedy}")


def _check(device: str, platform: Platform, fallback: str | None) -> None:
    """Raise UserError for a device that is not here, or an unknown fallback."""
    here = torch.accelerator.current_accelerator() if device not in (sim.NAME, "cpu") else None
    if device not in (sim.NAME, "cpu") and (here is None or here.type != device):
        raise UserError(f"PyTorch sees no {device} device; choose sim, or cpu for tests")
    if fallback not in (None, "cpu") or (fallback and device != sim.NAME and not is_chip(platform)):
        raise UserError(
            f"fallback {fallback!r} on {device}: choose cpu, for {sim.NAME} or a chip; or leave fallback out"
        )


def _all(library: Library) -> dict[str, Match]:
    """Return the match for every ATen overload in this PyTorch that the library can serve."""
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    matches = {name: library.match(name) for name in sorted(names)}
    return {name: match for name, match in matches.items() if match is not None}


def _full(name: str) -> str:
    """Return the full name of an overload; raise UserError if it does not exist."""
    return name_of(resolve(full(name)))


def _match(library: Library, overload: str) -> Match:
    """Return the overload's kernel; raise UserError if there is none."""
    match = library.match(overload)
    if match is None:
        raise UserError(
            f"{overload}: the library has no kernel for it; write one: {program_name()} refine --op {overload}"
        )
    return match


def _standings(workspace: Workspace, platform: Platform) -> Standings:
    """Return the verdicts on a platform; empty without a workspace, which is not created."""
    if not workspace.root.is_dir():
        return Standings()
    store = workspace.verdicts()
    try:
        return store.standings(platform)
    finally:
        store.close()


def entry_of(match: Match, fit: frozenset[str]) -> Entry:
    """Return the entry by which a match serves its overload for the dtypes `fit`."""
    copy = match.copy.path if match.copy else None
    kernel = match.kernel
    files = (kernel, *kernel.reached, *((match.copy, *match.copy.reached) if match.copy else ()))
    calls = {file.path: {o: callee.path for o, callee in file.callees} for file in files if file.callees}
    return Entry(
        plan=match.plan,
        kernel=kernel.path,
        takes_out=kernel.takes_out,
        copy=copy,
        label=shown_path(kernel.path),
        listed=kernel.listed,
        verified=fit,
        calls=calls,
        draws=kernel.draws,
        texts={file.path: file.source for file in files},
    )


def _is_composite(overload: str, device: str) -> bool:
    """Return True if autograd differentiates the overload's component operators.

    A kernel for such an overload would cut the gradient. The dispatcher's rule makes an exception if the backend has
    its own kernel, as CPU and CUDA have for aten::silu_backward. An out-of-tree backend may have a kernel if autograd
    has a formula for the whole overload.
    """
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    key = BACKENDS[device].key if device in BACKENDS else _OUT_OF_TREE
    keys = ("CPU", "Autograd") if key == _OUT_OF_TREE else (key,)
    return has_kernel(overload, "CompositeImplicitAutograd") and not all(has_kernel(overload, key) for key in keys)


def _refusal(overload: str, reason: str, workspace: Workspace, platform: Platform) -> str:
    """Return the message for an overload in `ops` that may not be served."""
    if reason.startswith(OUTSIDE):
        return f"{overload}: its kernel is {reason}"
    if reason == COMPOSITE:
        return f"{overload}: {reason}; register kernels of those"
    if reason.startswith(UNTRIED):
        return f"{overload}: its kernel is {reason}; or use it all the same (--unverified)"
    if reason != NOT_VERIFIED:
        look = f"{program_name()} verify {overload}"
        return f"{overload}: {reason}; look at it: {look}; or use it all the same (--unverified)"
    return f"{overload}: its kernel is not verified in {workspace.root}; {_remedy(overload, platform)}"


def _remedy(subject: str, platform: Platform) -> str:
    """Return the command that verifies a kernel."""
    on = "" if platform.typed == PLATFORM else f" --platform {platform.typed}"
    return (
        f"verify it: {program_name()} verify {subject}{on}; or use unverified kernels (--unverified, unverified=True)"
    )
