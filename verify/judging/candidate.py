"""Prepare any file with a kernel for judging: a kernel file, a bare wrapper, or a language model's answer."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from traces import UserError
from traces.facts import tagged
from verify import syntax
from verify.cases.opinfo import kept_cases
from verify.cases.samples import overloads_of
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile, KernelFileError
from verify.judging.dialect import limited, violations
from verify.judging.job import Job
from verify.lint import Profile, Violation, lint, source_in

COPIES = tagged("of_contiguous")
FLOATS = ("float32", "float64", "float16", "bfloat16", "complex64")  # dtypes in which a bare file is tried
_OPERATOR = re.compile(r"^#[ \t]*op:[ \t]*(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Candidate:
    """Kernel to be judged.

    Attributes:
        name: File name.
        source: Its text.
        kernel: The parsed kernel file, or None if it cannot be used.
        overloads: Overloads to judge it on.
        contract: True if it follows the library's contract completely.
        violations: Dialect violations.
        profile: Dialect that it was checked against.
        plan: How to derive an overload that the file does not list.
        copy: The library's `aten::copy_`, if the plan needs it.
    """

    name: str
    source: str
    kernel: KernelFile | None
    overloads: tuple[str, ...]
    contract: bool
    violations: tuple[Violation, ...]
    profile: Profile
    plan: Plan | None = None
    copy: KernelFile | None = None


def read_candidate(
    text: str, path: Path, profile: Profile, operator: str | None = None, contract_profile: Profile | None = None
) -> Candidate:
    """Read a file's text.

    Args:
        text: File text.
        path: Path, for messages.
        profile: Dialect to check it against.
        operator: Operator to judge it on; by default the one in OVERLOADS or in a line `# op: NAME`.
        contract_profile: Dialect for files that follow the library's contract; by default `profile`.

    Raises:
        UserError: The operator is not specified or does not exist.
    """
    source, violation = source_in(text, profile)
    operator = operator or next(iter(_OPERATOR.findall(source or "")), None)
    names = _names(source or "", profile)
    if operator is None and "OVERLOADS" not in names:
        broken = tuple(v for v in lint(source, profile) if v.rule == "syntax") if source is not None else ()
        if broken:  # the file may name its operator, but it cannot be read
            return Candidate(path.name, text, None, (), False, broken, profile)
        raise UserError(f"{path}: nothing says which operator this is; name it with --op, such as --op aten::exp")
    overloads = overloads_of(operator) if operator is not None else []
    if source is None or violation is not None:
        broken = (violation,) if violation else ()
        return Candidate(path.name, text, None, tuple(overloads), False, broken, profile)
    contract = {"OVERLOADS", "DTYPES"} <= names
    profile = contract_profile if contract and contract_profile is not None else profile
    broken_rules = lint(source, profile)
    kernel = None
    if "wrapper" in names:
        try:
            kernel = KernelFile.parse(source if contract else completed(source, overloads), path, profile.blocks)
        except KernelFileError:
            if operator is None or not broken_rules:  # otherwise lint explains the problem
                raise
    if operator is None and kernel is not None:
        overloads = list(kernel.overloads)
    if kernel is not None and contract:
        broken_rules, kernel = violations(kernel, profile), limited(kernel, profile)
    return Candidate(path.name, source, kernel, tuple(overloads), contract, tuple(broken_rules), profile)


def alone(candidate: Candidate) -> Callable[[str], Job]:
    """Return a function that describes how a candidate serves overloads by itself, without a library.

    A bare file may call the ATen operators that its dialect allows, and its results may have other strides.
    """
    kernel = candidate.kernel
    allowed = frozenset[str]() if candidate.contract else candidate.profile.wrapper_operators

    def serve(overload: str) -> Job:
        assert kernel is not None
        job = Job(candidate.plan or Plan(overload, overload), kernel, (), candidate.copy, strict=candidate.contract)
        return replace(job, allowed=allowed - ({overload} - COPIES))

    return serve


def without_floats(candidate: Candidate, cache: Path) -> str:
    """Return a message if a kernel file claims no floating dtype although its operator takes them, else ''.

    `cache` is the directory with stored OpInfo samples.
    """
    assert candidate.kernel is not None
    dtypes = candidate.kernel.dtypes
    if any("float" in dtype or "complex" in dtype for dtype in dtypes):
        return ""
    samples = kept_cases(cache, list(candidate.overloads), ("float32",))
    # another operator's float32 call may reach the overload with bools
    taken = [case for case in samples if any(ref.dtype == "float32" for ref in case.load().tensors)]
    if not taken:
        return ""
    problem = f"DTYPES hold {', '.join(dtypes)} and no floating dtype, which {taken[0].overload} takes"
    return f'[dtypes] {problem} instead: compute these, too, and write DTYPES = ("bfloat16", "float16", "float32")'


def _names(source: str, profile: Profile) -> set[str]:
    """Return the names defined at module level; an empty set if the text is invalid or too long."""
    if len(source) > profile.limits["bytes"]:
        return set()
    try:
        body = syntax.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    functions = {n.name for n in body if isinstance(n, ast.FunctionDef)}
    return functions | {t.id for n in body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}


def completed(source: str, overloads: list[str], dtypes: tuple[str, ...] = FLOATS) -> str:
    """Return a bare file with the imports and constants of the contract added, on its first line if that is free.

    If the file has `from __future__ import ...`, they follow it, because only a docstring may precede that
    import.
    """
    head = f"import math; import torch; import triton; import triton.language as tl; OVERLOADS = {tuple(overloads)!r}; "
    head += f"DTYPES = {dtypes!r}"
    future = [n for n in syntax.parse(source).body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    if future:
        lines = source.encode().split(b"\n")
        line, column = int(future[-1].end_lineno or 0) - 1, future[-1].end_col_offset  # in bytes
        lines[line] = lines[line][:column] + f"; {head}".encode() + lines[line][column:]
        return b"\n".join(lines).decode()
    first = source.split("\n", 1)[0].strip()
    return f"{head}  {source}" if not first or first.startswith("#") else f"{head}\n{source}"
