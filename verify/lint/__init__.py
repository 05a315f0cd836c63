"""Static lint for a kernel file: report constructs outside the dialect, and suggest replacements.

Lint teaches; it does not protect. It compares a syntax tree with allow-lists of full dotted names, and reports
all violations at once, each with a suggested replacement. The dispatch guard and the sandbox enforce the rules.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from verify import syntax
from verify.linking import LinkError, link, written
from verify.lint.device import check_device
from verify.lint.host import check_host
from verify.lint.kernel import check_kernels
from verify.lint.module import check_module
from verify.lint.names import Findings, TooMuchWork, Violation, collect_names, declared_layouts
from verify.lint.profile import ANY_FILE, Profile, load_profile, profile_names
from verify.lint.records import without_records

__all__ = [
    "ANY_FILE",
    "Profile",
    "Violation",
    "lint",
    "lint_answer",
    "lint_kernels",
    "lint_text",
    "load_profile",
    "profile_names",
    "render",
]

_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_FENCE = re.compile(r"^(`{3,})[ \t]*([\w+-]*)$")
_BLOCK = (ast.For, ast.While, ast.With, ast.Try, ast.AsyncFor, ast.AsyncWith)
_BLOCKS = 20  # Python's own limit on nested blocks
_BITS = 256  # largest allowed integer literal
_ONE_BLOCK = "answer with exactly one block that begins with ```python and ends with ```, holding the whole file"


def lint(source: str, profile: Profile, overload: str | None = None, *, written: str | None = None) -> list[Violation]:
    """Return all violations in a kernel file's source, ordered by line; empty if it is clean.

    Args:
        source: Text of the kernel file.
        profile: The dialect.
        overload: Requested operator, such as `aten::gelu`, that OVERLOADS must contain; None accepts any.
        written: Text of the author, whose size the profile limits, if blocks are linked into `source` already.

    Returns:
        The violations. Line 0 stands for the whole file.
    """
    findings = Findings()
    if _is_too_long(source if written is None else written, profile, findings):
        return findings.sorted()
    try:
        source = link(source, profile.blocks)
    except LinkError as error:
        findings.add("blocks", error.line, error.problem, error.instead)
        return findings.sorted()
    try:
        tree = _parse(source, profile, findings)
        if tree is not None:
            profile = profile.with_layouts(declared_layouts(tree) or ())
            tree = without_records(tree, profile)
            names = collect_names(tree, profile)
            check_module(tree, names, profile, findings, overload)
            check_kernels(names, profile, findings)
            check_host(tree, names, profile, findings)
            check_device(names, profile, findings)
    except (TooMuchWork, RecursionError, OverflowError, MemoryError):
        problem = "more than can be analysed: too long, too deeply nested, or wrong in too many places"
        findings.violations.add(Violation(0, "depth", problem, "write fewer and plainer statements and helpers"))
    return [_placed(violation, source) for violation in findings.sorted()]


def lint_kernels(source: str, profile: Profile) -> list[Violation]:
    """Return the violations in a linked text's kernels, ignoring the code around them."""
    findings = Findings()
    try:
        tree = _parse(source, profile, findings)
        if tree is not None:
            check_kernels(collect_names(tree, profile), profile, findings)
    except (TooMuchWork, RecursionError, OverflowError, MemoryError):
        findings.add("depth", 0, "more than can be analysed", "write fewer and plainer statements")
    return findings.sorted()


def _placed(violation: Violation, linked: str) -> Violation:
    """Move a violation inside a linked block to the block's own line number."""
    violation = replace(violation, linked_line=violation.line)
    block, line = written(linked, violation.line)
    if not block:
        return violation
    hint = "give your own another name: a block that you import uses this one"
    instead = hint if violation.rule == "shadowing" else violation.instead
    return replace(violation, line=0, problem=f"{violation.problem} (line {line} of {block})", instead=instead)


def lint_answer(answer: str, profile: Profile, overload: str | None = None) -> tuple[str | None, list[Violation]]:
    """Return the kernel file in an LLM's answer, and the violations in the answer or the file.

    The file is None if the answer does not contain exactly one.
    """
    source, violation = take_source(answer, profile)
    if violation is not None or source is None:
        return source, [violation] if violation else []
    return source, lint(source, profile, overload)


def lint_text(text: str, profile: Profile, overload: str | None = None) -> list[Violation]:
    """Return the violations in a text that is either a file or an LLM's answer."""
    source, violation = source_in(text, profile)
    if violation is not None or source is None:
        return [violation] if violation else []
    return lint(source, profile, overload)


def source_in(text: str, profile: Profile) -> tuple[str | None, Violation | None]:
    """Return the file in a text that is a file itself, or an LLM's answer with one ```python block."""
    if any(map(_fence, text.replace("\r\n", "\n").split("\n"))) and _parse(text, profile, Findings()) is None:
        return take_source(text, profile)
    return text, None


def take_source(answer: str, profile: Profile) -> tuple[str | None, Violation | None]:
    """Return the only fenced python block in an answer, or the format violation that prevents it."""
    if len(answer) > 4 * profile.limits["bytes"]:
        problem = f"an answer of {len(answer)} characters"
        return None, Violation(0, "answer-format", problem, "answer with one kernel file and at most a few sentences")
    blocks, unclosed = _blocks(answer)
    python = [text for language, text in blocks if language in ("python", "py")]
    if len(python) == 1 and not unclosed:
        return python[0], None
    if unclosed:
        problem = "the last ``` block is not closed (the answer was cut off, or the closing fence is missing)"
    elif python:
        problem = f"{len(python)} python blocks"
    else:
        problem = "no ```python block" if answer.strip() else "the answer is empty"
    return None, Violation(0, "answer-format", problem, _ONE_BLOCK)


def render(violations: list[Violation]) -> str:
    """Format violations as text, one per line."""
    return "\n".join(map(str, violations))


def _fence(line: str) -> re.Match[str] | None:
    return _FENCE.match(line.rstrip(" \t"))


def _blocks(answer: str) -> tuple[list[tuple[str, str]], bool]:
    blocks: list[tuple[str, str]] = []
    opened: tuple[str, str, list[str]] | None = None  # fence, language, lines
    for line in answer.replace("\r\n", "\n").split("\n"):
        fence = _fence(line)
        if opened is None and fence:
            opened = fence[1], fence[2].lower(), []
        elif opened is not None and fence and fence[1] == opened[0] and not fence[2]:
            blocks.append((opened[1], "\n".join(opened[2]) + "\n"))
            opened = None
        elif opened is not None:
            opened[2].append(line)
    return blocks, opened is not None


def _is_too_long(source: str, profile: Profile, findings: Findings) -> bool:
    """Report a text that exceeds the profile's limit in bytes, and return True if it does.

    Blocks that are linked in do not count: the library vouches for them.
    """
    too_long = len(source.encode("utf-8", "surrogatepass")) > profile.limits["bytes"]
    if too_long:
        problem = f"over {profile.limits['bytes']} bytes"
        findings.add("size", 0, problem, "write one operator's kernels and nothing else")
    return too_long


def _parse(source: str, profile: Profile, findings: Findings) -> ast.Module | None:
    """Parse the source, or report why it cannot be parsed.

    The text may not be plain UTF-8 or valid Python, or it may be nested too deeply.
    """
    for number, line in enumerate(source.split("\n")[:2], 1):
        cookie = _COOKIE.match(line)
        if cookie and cookie[1].lower().replace("_", "-") not in ("utf-8", "utf8"):
            findings.add("encoding", number, f"source encoding {cookie[1]}", "write plain UTF-8 without a coding line")
            return None
    bad = re.search("[\0\ufeff\f\ud800-\udfff]", source)
    if bad:
        number = source.count("\n", 0, bad.start()) + 1
        findings.add("encoding", number, f"character {bad[0]!r} in the source", "write plain text")
        return None
    try:
        tree = syntax.parse(source)
    except SyntaxError as error:
        findings.add(
            "syntax", error.lineno or 0, f"not valid Python: {error.msg}", "mend this line; answer with the whole file"
        )
        return None
    except (ValueError, RecursionError, MemoryError):
        findings.add("depth", 0, "nested too deeply to be parsed", "break the expression into several lines")
        return None
    return tree if _readable(tree, profile, findings) else None


def _readable(tree: ast.Module, profile: Profile, findings: Findings) -> bool:
    """Return True if the tree is flat enough to analyze, and its numbers are small enough to print."""
    deep = _deepest_over(tree, profile.limits["depth"])
    if deep:
        findings.add("depth", deep, "nested too deeply", "break the expression into several lines")
        return False
    nodes = syntax.walk(tree)
    has_many_blocks = sum(isinstance(n, _BLOCK) for n in nodes) > _BLOCKS
    deep = _deepest_over(tree, _BLOCKS, _BLOCK) if has_many_blocks else 0
    if deep:
        problem = f"more than {_BLOCKS} loops or `with` inside each other, which Python does not compile"
        findings.add("depth", deep, problem, "write one loop over all indices, or fewer loops")
        return False
    huge = [n for n in nodes if isinstance(n, ast.Constant) and _is_huge(n.value)]
    if huge:
        findings.add("size", huge[0], f"an integer of more than {_BITS} bits", "write a number of at most 64 bits")
    return not huge


def _is_huge(value: object) -> bool:
    return isinstance(value, int) and value.bit_length() > _BITS


def _deepest_over(tree: ast.AST, limit: int, kinds: tuple[type[ast.AST], ...] = (ast.AST,)) -> int:
    """Return the line of a node nested in more than `limit` nodes of these kinds, or 0.

    An explicit stack replaces recursion, because the tree may be deeper than Python's recursion limit.
    """
    stack: list[tuple[ast.AST, int, int]] = [(tree, 0, 0)]  # node, line, number of enclosing nodes
    while stack:
        node, line, depth = stack.pop()
        if depth > limit:
            return max(1, line)
        inside = depth + isinstance(node, kinds)
        stack += [(c, getattr(c, "lineno", line), inside) for c in syntax.children(node)]
    return 0
