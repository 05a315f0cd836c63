"""Read YAML files that people write, and remember line numbers for error messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from traces import UserError
from traces.errors import read_problem

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # as safe, and ten times as fast if PyYAML has libyaml
# keys and indices, from the top; in a list, a string selects the item with that text
Where: TypeAlias = Sequence[str | int]


def loaded(path: Path) -> Any:
    """Return the content of a YAML file that is part of this toolkit."""
    return yaml.load(path.read_text(encoding="utf-8"), _LOADER)


@dataclass(frozen=True)
class Document:
    """Mapping read from the file `path`; `root` has the YAML nodes, which know their lines."""

    path: Path
    data: dict[str, Any]
    root: yaml.Node

    @classmethod
    def read(cls, path: Path) -> Document:
        """Read a file without evaluating anything; raise UserError if it is unreadable or not a YAML mapping."""
        try:
            text = path.read_text(encoding="utf-8")
            root = yaml.compose(text, yaml.SafeLoader)
            data = yaml.safe_load(text)
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: cannot be read ({read_problem(error)}); name a YAML file") from error
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise UserError(f"{path}:{line}: not YAML ({error.problem})") from error
        except yaml.YAMLError as error:
            raise UserError(f"{path}: not YAML ({' '.join(str(error).split())[:200]})") from error
        if not isinstance(data, dict) or root is None:
            raise UserError(f"{path}: not a mapping of names to values; see docs/platforms")
        for key in _repeated(root):
            raise UserError(f"{path}:{key.start_mark.line + 1}: {key.value} is set twice; remove one of them")
        return cls(path, data, root)

    def error(self, location: Where, message: str) -> UserError:
        """Return an error about the part at the keys `location`, with its line number.

        If the path leads nowhere, the line of the deepest existing part is used.
        """
        return UserError(f"{self.path}:{self._line(location)}: {message}")

    def _line(self, location: Where) -> int:
        node, line = self.root, self.root.start_mark.line
        for step in location:
            part = _part(node, step)
            if part is None:
                break
            node, line = part
        return line + 1


def _repeated(node: yaml.Node) -> Iterator[yaml.Node]:
    """Yield the keys that a mapping sets again; YAML forbids them, and PyYAML takes the last one."""
    if isinstance(node, yaml.MappingNode):
        keys = [key for key, _ in node.value]
        texts = [key.value for key in keys]
        yield from (key for i, key in enumerate(keys) if isinstance(key.value, str) and key.value in texts[:i])
    for child in node.value if isinstance(node.value, list) else ():
        for part in child if isinstance(child, tuple) else (child,):
            yield from _repeated(part)


def _part(node: yaml.Node, step: str | int) -> tuple[yaml.Node, int] | None:
    """Return the child node that a step leads to, and its line counted from 0."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return value, key.start_mark.line
    elif isinstance(node, yaml.SequenceNode):
        if isinstance(step, int) and step < len(node.value):
            return node.value[step], node.value[step].start_mark.line
        for item in node.value:
            if isinstance(item, yaml.ScalarNode) and item.value == str(step):
                return item, item.start_mark.line
    return None
