"""Check if a kernel file conforms to a platform's dialect; every command uses this module for the same reasons.

A platform's dialect may lack what the toolkit's own dialect allows, such as atomics or float64. If kernels use it, the
calls whose compiled programs contain it are COMPILE_ERRORs, and other calls of the same file are judged as usual. Other
violations, such as those in the wrapper, are found without a call: then every case is a COMPILE_ERROR. The outcome is
CHEAT only if the toolkit's own dialect also forbids the construct, because it could pass a test without computing. An
honest kernel that uses features a chip does not support does not cheat.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from verify import syntax
from verify.contract.kernel_file import KernelFile
from verify.judging.job import Job
from verify.linking import link, written
from verify.lint import Profile, Violation, lint, load_profile
from verify.lint.gravity import could_cheat, gravest
from verify.lint.names import collect_names
from verify.lint.profile import ANY_FILE, DEFAULT
from verify.outcome import Outcome, Verdict
from verify.platforms import Platform

# Triton's types by their names in kernels and annotations -> element types in the compiler's first representation.
_ELEMENTS = {
    **{f"tl.{name}": name.replace("uint", "i").replace("int", "i") for name in ("int64", "uint64", "int16", "uint16")},
    **{"tl.float64": "f64", "tl.float32": "f32", "tl.float16": "f16", "tl.bfloat16": "bf16"},
    **{"fp64": "f64", "fp32": "f32", "fp16": "f16", "bf16": "bf16"},
}
_BEYOND = re.compile(r"beyond the chip's limit (\w+):| of \S+, not aligned to \d+ bytes")
_OUTSIDE = re.compile(r"not in the dialect of [^:]+: (.+?)(?: at \S+:\d+| \(line \d+ of \S+\))?; ")


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


def refused_whole(
    kernel: KernelFile, broken: Sequence[Violation], profile: Profile, platform: Platform
) -> tuple[Outcome, Violation] | None:
    """Return the outcome and the reason if violations refuse a file whole; None if each concerns only some calls.

    A platform without targets compiles nothing before a call runs, so there every violation refuses the file.
    """
    if not broken:
        return None
    outcome, first = judged(broken, _linked(kernel), profile)
    if outcome is Outcome.CHEAT or not platform.targets:
        return outcome, first
    beside = [violation for violation in broken if _body(kernel, violation) is None]
    return (outcome, gravest(beside)[0]) if beside else None


def _marks(kernel: KernelFile, broken: Iterable[Violation], role: str) -> Iterator[tuple[str, Violation]]:
    """Yield the mark by which a child recognises each violation in what it compiles (verify/child/translated.py)."""
    for violation in broken:
        is_annotation = violation.rule == "annotation"  # it is no statement, so the compiler does not visit it
        line = _body(kernel, violation) if is_annotation else violation.linked_line
        name = "" if is_annotation else violation.named.rpartition(".")[2]
        yield f"{role}:{line}:{name}:{_ELEMENTS.get(violation.named, '')}", violation


def _body(kernel: KernelFile, violation: Violation) -> int | None:
    """Return the line of the first statement in the kernel that a violation is in; None if it is in no kernel."""
    return next((body for lines, body in _bodies(kernel.source) if violation.linked_line in lines), None)


@lru_cache(maxsize=64)
def _bodies(source: str) -> list[tuple[range, int]]:
    """Return for each kernel the lines from its `def`, and the line of its first statement."""
    tree = syntax.parse(source)
    kernels = collect_names(tree, load_profile(DEFAULT)).kernels.values()
    return [(range(k.lineno, (k.end_lineno or k.lineno) + 1), _first_line(k)) for k in kernels]


def _first_line(kernel: ast.FunctionDef) -> int:
    """Return the line of a kernel's first statement that is no docstring."""
    body = kernel.body[ast.get_docstring(kernel) is not None :] or kernel.body
    return body[0].lineno


def outside(kernel: KernelFile, platform: Platform) -> tuple[Violation, ...]:
    """Return the violations in a kernel file on a platform."""
    return _broken(kernel, platform.lint, platform.sha256)


@lru_cache(maxsize=4096)
def refused_file(kernel: KernelFile, platform: Platform) -> tuple[Outcome, Violation] | None:
    """Return the outcome and the reason if the platform's dialect refuses the file for every call, else None."""
    return refused_whole(kernel, outside(kernel, platform), load_profile(platform.lint), platform)


def refusal(job: Job, platform: Platform) -> Verdict | None:
    """Return the verdict for every case of a job if the dialect refuses one of its files whole, else None."""
    for kernel in _checked(job, platform).values():
        whole = refused_file(kernel, platform)
        if whole is not None:
            outcome, first = whole
            detail = described(first, kernel, platform.name)
            return Verdict("", outcome, detail, detail, layer="lint", rule=first.rule)
    return None


def marks(job: Job, platform: Platform) -> tuple[tuple[str, str], ...]:
    """Return the marks of violations that concern only the calls that compile them (see `Job`)."""
    texts: dict[str, str] = {}
    for role, kernel in _checked(job, platform).items():
        for mark, violation in _marks(kernel, outside(kernel, platform), role):
            texts.setdefault(mark, described(violation, kernel, platform.name))
    return tuple(texts.items())


def described(violation: Violation, kernel: KernelFile, dialect: str) -> str:
    """Describe a violation in one line: the dialect, the name or problem, the place, and what to write instead."""
    block, line = written(kernel.source, violation.linked_line)
    problem = violation.named if violation.rule == "name" and violation.named else violation.problem
    at = f" at {block or kernel.path.name}:{line}" if violation.linked_line and " of blocks/" not in problem else ""
    return f"not in the dialect of {dialect}: {problem}{at}; {violation.instead}"


def lacking(detail: str) -> str:
    """Return what a chip lacks according to a verdict's detail; "" if it does not say.

    It is a name or a problem, such as `tl.erf`, or a limit, such as `limit num_warps` (verify/child/limiting.py) and
    `limit alignment` (verify/child/accesses.py).
    """
    if match := _OUTSIDE.search(detail):
        return match[1]
    limit = _BEYOND.search(detail)
    return f"limit {limit[1] or 'alignment'}" if limit else ""


def _checked(job: Job, platform: Platform) -> dict[str, KernelFile]:
    """Return the files of a job, by role, that have to be checked against the platform's dialect."""
    if job.dialect in (None, platform.lint) or "lint" in job.off:
        return {}
    return job.roles


@lru_cache(maxsize=4096)
def _broken(kernel: KernelFile, dialect: str, state: str) -> tuple[Violation, ...]:
    """Return a file's violations; `state` is the digest of the platform's file, for the cache."""
    profile = load_profile(dialect).with_calls(overload for overload, _ in kernel.callees)
    return tuple(violations(kernel, profile))


def _linked(kernel: KernelFile) -> str:
    """Return a kernel file's text with the library's own blocks."""
    return link(kernel.written, now=kernel.blocks[-1:])
