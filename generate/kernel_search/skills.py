"""Store lessons about kernel speed with the measurements that support them, in `.enable/skills.jsonl`.

A skill is a sentence with times before and after on recorded shapes. A skill is stored only with such times, and only
for an accepted kernel. It is looked up by operator family, shape class and target.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from generate.validation import check_version, validated
from traces import UserError
from traces.format import write_durably

FORMAT, VERSION = "enable-skills", 1
SHOWN = 6  # maximum number of skills in a prompt
_ACTION = "move it away to begin a new one, or pass --no-skills"
MOST_TEXT = 300  # maximum characters in a skill's sentence
_CLASSES = ((4096, "up to 4,096 elements"), (65_536, "up to 65,536 elements"), (1 << 20, "up to 2^20 elements"))


def shape_class(elements: int) -> str:
    """Return the class for shapes whose largest tensor has this many elements, in words."""
    return next((words for most, words in _CLASSES if elements <= most), "more than 2^20 elements")


@dataclass(frozen=True)
class Support:
    """Times on one shape.

    Attributes:
        shape: Shape name.
        shape_class: Class, from `shape_class`.
        before_us: Median time before, in microseconds.
        after_us: Median time after, in microseconds.
        rounds: Rounds behind each median.
        before: SHA-256 for the old kernel.
        after: SHA-256 for the new kernel.
    """

    shape: str
    shape_class: str
    before_us: float
    after_us: float
    rounds: int
    before: str
    after: str


@dataclass(frozen=True)
class Skill:
    """A lesson with its measurements.

    Attributes:
        text: One sentence.
        family: Operator family (verify/operators.py, `group`).
        overload: Overload it was learned on.
        target: Target, such as sm_90.
        support: Measurements.
    """

    text: str
    family: str
    overload: str
    target: str
    support: tuple[Support, ...]

    def gain(self, classes: Collection[str]) -> float:
        """Return the geometric mean of the speedup over shapes in these classes; 0 if there are none."""
        product, count = 1.0, 0
        for one in (s for s in self.support if s.shape_class in classes):
            product, count = product * one.before_us / one.after_us, count + 1
        return product ** (1 / count) if count else 0.0

    @property
    def line(self) -> str:
        """Return the skill as a line for a prompt, with its largest gain."""
        first = max(self.support, key=lambda s: s.before_us / s.after_us)
        return (
            f"{self.text} (measured on {self.target}: {self.overload}, {first.shape}: {first.before_us:.1f} us before, "
            f"{first.after_us:.1f} us after; {len(self.support)} shapes)"
        )


class SkillStore:
    """A workspace's skills."""

    def __init__(self, path: Path) -> None:
        """Read the file, if it exists.

        Raises:
            UserError: If it is damaged, or has an unknown format or version.
        """
        self.path = path
        self.skills = _read(path) if path.exists() else []

    def add(self, skill: Skill) -> None:
        """Store a skill durably; a duplicate is ignored.

        Raises:
            UserError: If no measurement supports it.
        """
        faster = [s for s in skill.support if 0 < s.after_us < s.before_us and s.rounds > 0]
        if not skill.text.strip() or not faster:
            raise UserError(f"a skill of {skill.overload} without measurements that support it is not kept")
        if skill in self.skills:
            return
        self.skills.append(skill)
        lines = [{"format": FORMAT, "version": VERSION}, *(asdict(s) for s in self.skills)]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(self.path, [f"{json.dumps(line, sort_keys=True)}\n".encode() for line in lines])

    def find(self, family: str, classes: Collection[str], target: str) -> Sequence[Skill]:
        """Return up to SHOWN skills for a family and a target that gain on shapes in these classes, best first."""
        matching = [s for s in self.skills if s.family == family and s.target == target and s.gain(classes) > 1]
        return sorted(matching, key=lambda s: -s.gain(classes))[:SHOWN]


def _read(path: Path) -> list[Skill]:
    """Return the skills in a file, or raise UserError."""
    try:
        first, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line] or [None]
        check_version(first, path, FORMAT, VERSION, action=_ACTION)
        return [validated(Skill, line) for line in lines]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not a file of skills ({error!r}); {_ACTION}") from error
