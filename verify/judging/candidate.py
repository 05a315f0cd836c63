"""Any file that holds a kernel, made ready to be judged: a kernel file, a bare wrapper, an LLM's answer."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from traces import UserError
from verify import syntax
from verify.cases.samples import overloads_of
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile, KernelFileError
from verify.judging.dialect import limited, violations
from verify.lint import Profile, Violation, lint, source_in

FLOATS = ("float32", "float64", "float16", "bfloat16")  # which a bare file is tried with
_OPERATOR = re.compile(r"^#[ \t]*op:[ \t]*(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Candidate:
    """A kernel to be judged. overloads: those to judge it on. contract: it follows the library's contract in full.
    profile: the dialect that it was held against. plan: how it serves an overload that it does not list, with the
    library's `aten::copy_` where that needs it.
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
    """Read a file's text. operator: to judge it on, else what the file names in OVERLOADS or in a line `# op: NAME`.

    profile: the dialect that it is held against; contract_profile: the same if it follows the library's contract, by
    default `profile`.

    Raises UserError where nothing says which operator that is, or there is no such operator.
    """
    source, violation = source_in(text, profile)
    operator = operator or next(iter(_OPERATOR.findall(source or "")), None)
    names = _names(source or "", profile)
    if operator is None and "OVERLOADS" not in names:
        broken = tuple(v for v in lint(source, profile) if v.rule == "syntax") if source is not None else ()
        if broken:  # it may say so, and cannot be read
            return Candidate(path.name, text, None, (), False, broken, profile)
        raise UserError(f"{path}: nothing says which operator this is; name it with --op, such as --op aten::exp")
    overloads = overloads_of(operator) if operator is not None else []
    if source is None or violation is not None:
        broken = (violation,) if violation else ()
        return Candidate(path.name, text, None, tuple(overloads), False, broken, profile)
    contract = {"OVERLOADS", "DTYPES"} <= names
    profile = contract_profile if contract and contract_profile is not None else profile
    found = lint(source, profile)
    kernel = None
    if "wrapper" in names:
        try:
            kernel = KernelFile.parse(source if contract else completed(source, overloads), path, profile.blocks)
        except KernelFileError:
            if operator is None or not found:  # else lint tells what is wrong
                raise
    if operator is None and kernel is not None:
        overloads = list(kernel.overloads)
    if kernel is not None and contract:
        found, kernel = violations(kernel, profile), limited(kernel, profile)
    return Candidate(path.name, source, kernel, tuple(overloads), contract, tuple(found), profile)


def _names(source: str, profile: Profile) -> set[str]:
    """What is defined at module level; nothing of a text that is not Python, or too long to be read."""
    if len(source) > profile.limits["bytes"]:
        return set()
    try:
        body = syntax.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    found = {n.name for n in body if isinstance(n, ast.FunctionDef)}
    return found | {t.id for n in body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}


def completed(source: str, overloads: list[str], dtypes: tuple[str, ...] = FLOATS) -> str:
    """A bare file with the imports and constants of the contract before it, on its own first line if that is free.

    They come after `from __future__ import ...`, which nothing but a docstring may precede.
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
