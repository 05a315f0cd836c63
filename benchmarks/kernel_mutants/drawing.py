"""Draw mutants: each is determined by a seed and a number.

A file is drawn first, then a class that it offers, then the kernel file's own text or its blocks, then a function, and
then a change. So neither long files nor blocks that many files share dominate.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from benchmarks.kernel_mutants.changes import CLASSES
from benchmarks.kernel_mutants.program import Change, Function, Program, linked
from verify import meaning

ATTEMPTS = 200  # draws for one number until a change is a program with another meaning
LONGEST_SHOWN = 160  # characters of a change


@dataclass(frozen=True)
class Mutant:
    """One mutant of a kernel file.

    Attributes:
        number: Number of the draw.
        file: Kernel file.
        kind: Class.
        origin: Module and line of the change, such as `blocks/scan.py:14`.
        function: Function that is changed.
        is_device: True if Triton compiles that function.
        change: The change as text.
        text: Text of the mutant.
        statement: First line of the changed statement in that text.
    """

    number: int
    file: str
    kind: str
    origin: str
    function: str
    is_device: bool
    change: str
    text: str
    statement: int = 0


def draw(seed: int, number: int, files: Sequence[Path], kinds: Sequence[str] = tuple(CLASSES)) -> Mutant:
    """Return the mutant with this number; raise ValueError if the files offer none."""
    chance = random.Random(f"{seed}:{number}")
    for _ in range(ATTEMPTS):
        path = chance.choice(files)
        program = read(path)
        offered = {kind: by_function for kind in kinds if (by_function := changes_of(program, kind))}
        if not offered:
            continue
        kind = chance.choice(sorted(offered))
        function, change = _chosen(chance, program, offered[kind])
        text = applied(program, change)
        if text is not None:
            module, line = program.origin(program.line(change.start))
            shown = described(program, change)
            origin = f"{module or path.name}:{line}"
            name, is_device = function.node.name, function.is_device
            return Mutant(
                number, str(path), kind, origin, name, is_device, shown, text, program.statement(change.start)
            )
    raise ValueError(f"no mutant of {len(files)} files in {ATTEMPTS} draws")


@lru_cache(maxsize=64)
def read(path: Path) -> Program:
    """Return the program of a kernel file."""
    return Program(linked(path))


@lru_cache(maxsize=256)
def changes_of(program: Program, kind: str) -> list[tuple[Function, list[Change]]]:
    """Return the changes of one class by function, without functions that offer none."""
    by_function = [(function, list(CLASSES[kind](program, function))) for function in program.functions]
    return [(function, changes) for function, changes in by_function if changes]


def _chosen(
    chance: random.Random, program: Program, by_function: list[tuple[Function, list[Change]]]
) -> tuple[Function, Change]:
    """Choose between the file's own functions and its blocks, then a function, and then one of its changes."""
    own = [pair for pair in by_function if not program.origin(pair[0].node.lineno)[0]]
    linked_in = [pair for pair in by_function if program.origin(pair[0].node.lineno)[0]]
    part = chance.choice([pairs for pairs in (own, linked_in) if pairs])
    function, changes = chance.choice(part)
    return function, chance.choice(changes)


def applied(program: Program, change: Change) -> str | None:
    """Return the mutant's text, or None if it is no program or has the same meaning."""
    text = program.text[: change.start] + change.text + program.text[change.end :]
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    parts = [meaning.parts_of(t, lambda needed: ()) for t in (program.tree, tree)]
    return None if parts[0] == parts[1] else text


def described(program: Program, change: Change) -> str:
    """Return a change as `old -> new` in one line."""
    old, new = (" ".join(text.split()) for text in (program.text[change.start : change.end], change.text))
    return f"{old[:LONGEST_SHOWN]} -> {new[:LONGEST_SHOWN]}"
