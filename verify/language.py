"""Replace names of Triton's language by a platform's own functions and constants.

A platform's blocks may have a module `language.py`. Its public name `tl_erf` is used wherever a kernel file or a block
reads `tl.erf` or `tl.math.erf`, except in its own body. So a chip without a function of the language gets it in one
place, and no kernel changes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from verify import syntax

MODULE = "language"  # block module
_PREFIX = "tl_"
_MODULES = ("tl.", "tl.math.")  # Triton has most mathematical functions in both


def replacements(names: Iterable[str]) -> dict[str, str]:
    """Return the replacement for each name of the language, such as `tl_erf` for `tl.erf`; other names are ignored."""
    replacing = [name for name in names if name.startswith(_PREFIX)]
    return {f"{module}{name.removeprefix(_PREFIX)}": name for name in replacing for module in _MODULES}


def replaced(text: str, by: Mapping[str, str]) -> str:
    """Return a text with names of the language replaced, and the same text if it has none or is not valid Python."""
    if not any(name in text for name in by):
        return text
    try:
        tree = syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    inside = {id(n): f.name for f in tree.body if isinstance(f, ast.FunctionDef) for n in ast.walk(f)}
    nodes = [
        n
        for n in syntax.walk(tree)
        if isinstance(n, ast.Attribute) and by.get(ast.unparse(n), "") not in ("", inside.get(id(n)))
    ]
    if not nodes:  # a comment or a docstring names it
        return text
    lines = [line.encode() for line in text.split("\n")]
    for node in sorted(nodes, key=lambda n: (n.lineno, n.col_offset), reverse=True):
        if node.end_lineno == node.lineno:
            line, name = lines[node.lineno - 1], by[ast.unparse(node)].encode()
            lines[node.lineno - 1] = line[: node.col_offset] + name + line[node.end_col_offset :]
    return b"\n".join(lines).decode()


def defined_in(text: str) -> list[str]:
    """Return the replacing names that a language module defines."""
    return re.findall(rf"^(?:def +)?({_PREFIX}\w+) *(?:\(|=)", text, re.MULTILINE)
