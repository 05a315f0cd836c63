"""Reduce a program to the statements on which one result depends, for a reader who looks for the cause."""

from __future__ import annotations

import re

from benchmarks.differential.programs import Program

_ASSIGNED = re.compile(r"^\s*(\w+(?:, \w+)*) (?:-|\+)?= ")
_NAME = re.compile(r"[A-Za-z_]\w*")
_OPERATION = re.compile(r"\b(?:tl\.|scaled|blend|ordered)\w*|\.to\(tl\.\w+|//|<<|>>|[-+*/%&|^~<>=!]=?")


def sliced(program: Program, result: str) -> list[str]:
    """Return the lines on which a result buffer depends."""
    pointer, needed, kept = f"{result}_ptr", set[str](), list[list[str]]()
    for statement in reversed(_statements(program)):
        text = "\n".join(statement)
        assigned = {name for line in statement if (m := _ASSIGNED.match(line)) for name in m[1].split(", ")}
        if pointer in text or assigned & needed:
            needed |= set(_NAME.findall(text))
            kept.append(statement)
    return [line for statement in reversed(kept) for line in statement]


def operation(program: Program, result: str) -> str:
    """Return the first operation in the statement that computes a result buffer."""
    lines = [line for line in sliced(program, result) if not line.startswith("tl.store")]
    match = _OPERATION.search(lines[-1].partition(" = ")[2] or lines[-1]) if lines else None
    return match[0] if match else "load"


def _statements(program: Program) -> list[list[str]]:
    """Return each statement's lines; a loop or a branch is one statement, with its body."""
    statements: list[list[str]] = []
    for line in (line.text for line in program.lines):
        if statements and (line.startswith(" ") or line == "else:"):
            statements[-1].append(line)
        elif not line.startswith("tl.static_assert"):
            statements.append([line])
    return statements
