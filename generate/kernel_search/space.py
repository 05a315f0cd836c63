"""The settings that a kernel file declares, SPACE, and those that were chosen, TUNED (generate/blocks/tuning.py)."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from traces import UserError
from verify import syntax

MOST = 64  # settings of a space: each is compiled and timed

Setting: TypeAlias = tuple[int, ...]  # a value for each name of a space
Row: TypeAlias = tuple[str, int, Setting]  # target, least number of elements, setting


@dataclass(frozen=True)
class Space:
    """names, choices: what SPACE says; rows: what TUNED does."""

    names: tuple[str, ...]
    choices: tuple[tuple[int, ...], ...]
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, written: str, where: str) -> Space:
        """Read a kernel file's text. Raises UserError naming `where` if it declares no space, or one that makes no
        sense."""
        found = {name: _literal(written, name) for name in ("SPACE", "TUNED")}
        if found["SPACE"] is None:
            raise UserError(
                f"{where}: declares no SPACE of settings to choose from; see docs/tune.md for how, or tune it with a "
                "language model: leave --no-llm out"
            )
        try:
            space = cls(
                tuple(str(name) for name, _ in found["SPACE"]),
                tuple(tuple(map(int, values)) for _, values in found["SPACE"]),
                tuple((str(row[0]), int(row[1]), tuple(map(int, row[2:]))) for row in found["TUNED"] or ()),
            )
        except (TypeError, ValueError, IndexError) as error:
            like = '(("BLOCK", (256, 1024)),) and (("", 0, 256),)'
            raise UserError(f"{where}: SPACE and TUNED are not like {like}; see docs/tune.md") from error
        space._check(where)
        return space

    def _check(self, where: str) -> None:
        count = len(self.settings)
        if not 1 < count <= MOST:
            raise UserError(f"{where}: SPACE has {count} settings; 2 to {MOST} can be timed")
        if not self.rows or self.rows[0][:2] != ("", 0) or any(len(row[2]) != len(self.names) for row in self.rows):
            what = ", ".join(self.names)
            raise UserError(
                f'{where}: TUNED has to begin with ("", 0, {what}), each row with a value for each of these'
            )

    @property
    def settings(self) -> list[Setting]:
        """Every one that may be chosen."""
        return list(itertools.product(*self.choices))

    @property
    def default(self) -> Setting:
        """That of any target and number of elements."""
        return self.rows[0][2]

    def named(self, setting: Setting) -> str:
        """`BLOCK 256, WARPS 8`."""
        return ", ".join(f"{name} {value}" for name, value in zip(self.names, setting, strict=True))

    def chosen(self, target: str, best: Mapping[int, Setting]) -> tuple[Row, ...]:
        """The rows with these for a target in the place of what it had. best: by class of shapes (`size_class`); a
        class that was not measured has the setting of the next smaller one; beyond the largest the default holds."""
        rows = [row for row in self.rows if row[0] != target]
        last = self.default
        for number, setting in sorted(best.items()):
            if setting != last:
                rows.append((target, 1 << number, setting))
            last = setting
        if last != self.default:
            rows.append((target, 1 << (max(best) + 1), self.default))
        return tuple(rows)


def size_class(elements: int) -> int:
    """Shapes whose largest tensor has from 2**k to 2**(k + 1) - 1 elements are of class k."""
    return max(elements, 1).bit_length() - 1


def with_rows(written: str, rows: Sequence[Row]) -> str:
    """The kernel file with another table."""
    told = [repr((target, least, *setting)).replace("'", '"') for target, least, setting in rows]
    flat = f"TUNED = ({', '.join(told)}{',' * (len(told) == 1)})"
    text = flat if len(flat) <= 120 else "TUNED = (\n" + "".join(f"    {row},\n" for row in told) + ")"
    node = _node(written, "TUNED")
    assert node is not None and node.end_lineno is not None  # a Space was read from it
    lines = written.split("\n")
    return "\n".join([*lines[: node.lineno - 1], text, *lines[node.end_lineno :]])


def fixed(written: str, setting: Setting) -> str:
    """The kernel file with one setting for everything."""
    return with_rows(written, [("", 0, setting)])


def _literal(written: str, name: str) -> list[tuple] | None:  # type: ignore[type-arg]
    node = _node(written, name)
    try:
        return None if node is None else list(ast.literal_eval(node.value))
    except (ValueError, TypeError):
        return None


def _node(written: str, name: str) -> ast.Assign | None:
    if not re.search(rf"^{name}\b", written, re.MULTILINE):
        return None
    for node in syntax.parse(written).body:
        if isinstance(node, ast.Assign) and [getattr(t, "id", None) for t in node.targets] == [name]:
            return node
    return None
