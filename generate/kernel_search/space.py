"""Read and write a kernel file's tuning declarations: SPACE with the settings, and TUNED with the chosen ones.

See generate/blocks/tuning.py for the way kernels use them.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from traces import UserError
from verify import syntax

MOST = 64  # maximum number of settings in a space, because each is compiled and timed

Setting: TypeAlias = tuple[int, ...]  # one value per name in the space
Row: TypeAlias = tuple[str, int, Setting]  # target, minimum number of elements, setting


@dataclass(frozen=True)
class Space:
    """A kernel file's tuning declarations.

    Attributes:
        names: Names in SPACE.
        choices: Values for each name in SPACE.
        rows: Rows in TUNED.
    """

    names: tuple[str, ...]
    choices: tuple[tuple[int, ...], ...]
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, written: str, where: str) -> Space:
        """Read the declarations in a kernel file's text.

        Raises:
            UserError: If there is no SPACE, or if the declarations are malformed; the message begins with `where`.
        """
        declared = {name: _literal(written, name) for name in ("SPACE", "TUNED")}
        if declared["SPACE"] is None:
            raise UserError(
                f"{where}: declares no SPACE of settings to choose from; see docs/tune.md for how, or tune it with a "
                "language model: leave --no-llm out"
            )
        try:
            space = cls(
                tuple(str(name) for name, _ in declared["SPACE"]),
                tuple(tuple(map(int, values)) for _, values in declared["SPACE"]),
                tuple((str(row[0]), int(row[1]), tuple(map(int, row[2:]))) for row in declared["TUNED"] or ()),
            )
        except (TypeError, ValueError, IndexError) as error:
            example = '(("BLOCK", (256, 1024)),) and (("", 0, 256),)'
            raise UserError(f"{where}: SPACE and TUNED are not like {example}; see docs/tune.md") from error
        space._check(where)
        return space

    def _check(self, where: str) -> None:
        """Raise UserError if the space is too small or too large, or if TUNED does not fit it."""
        count = len(self.settings)
        if not 1 < count <= MOST:
            raise UserError(f"{where}: SPACE has {count} settings; 2 to {MOST} can be timed")
        if not self.rows or self.rows[0][:2] != ("", 0) or any(len(row[2]) != len(self.names) for row in self.rows):
            names = ", ".join(self.names)
            raise UserError(
                f'{where}: TUNED has to begin with ("", 0, {names}), each row with a value for each of these'
            )

    @property
    def settings(self) -> list[Setting]:
        """Return all settings."""
        return list(itertools.product(*self.choices))

    @property
    def default(self) -> Setting:
        """Return the setting for any target and number of elements."""
        return self.rows[0][2]

    def named(self, setting: Setting) -> str:
        """Return a setting as text: `BLOCK 256, WARPS 8`."""
        return ", ".join(f"{name} {value}" for name, value in zip(self.names, setting, strict=True))

    def chosen(self, target: str, best: Mapping[int, Setting]) -> tuple[Row, ...]:
        """Return the rows with new settings for a target, which replace its old rows.

        Args:
            target: Target, such as sm_90.
            best: Best setting by shape class (`size_class`). A class without a measurement gets the setting of
                the next smaller class; above the largest measured class the default applies.
        """
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
    """Return k for shapes whose largest tensor has from 2**k to 2**(k + 1) - 1 elements."""
    return max(elements, 1).bit_length() - 1


def with_rows(written: str, rows: Sequence[Row]) -> str:
    """Return the kernel file with other rows in TUNED."""
    row_texts = [repr((target, least, *setting)).replace("'", '"') for target, least, setting in rows]
    flat = f"TUNED = ({', '.join(row_texts)}{',' * (len(row_texts) == 1)})"
    text = flat if len(flat) <= 120 else "TUNED = (\n" + "".join(f"    {row},\n" for row in row_texts) + ")"
    node = _node(written, "TUNED")
    assert node is not None and node.end_lineno is not None  # a Space was read from it
    lines = written.split("\n")
    return "\n".join([*lines[: node.lineno - 1], text, *lines[node.end_lineno :]])


def fixed(written: str, setting: Setting) -> str:
    """Return the kernel file with one setting for all targets and sizes."""
    return with_rows(written, [("", 0, setting)])


def _literal(written: str, name: str) -> list[tuple] | None:  # type: ignore[type-arg]
    """Return the value assigned to a name as a list; None if there is none or it is not a literal."""
    node = _node(written, name)
    try:
        return None if node is None else list(ast.literal_eval(node.value))
    except (ValueError, TypeError):
        return None


def _node(written: str, name: str) -> ast.Assign | None:
    """Return the assignment to a name at module level, or None."""
    if not re.search(rf"^{name}\b", written, re.MULTILINE):
        return None
    for node in syntax.parse(written).body:
        if isinstance(node, ast.Assign) and [getattr(t, "id", None) for t in node.targets] == [name]:
            return node
    return None
