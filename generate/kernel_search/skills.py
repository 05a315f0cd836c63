"""What was learned of speed, each with the measurements that support it: `.enable/skills.jsonl`.

A skill is a sentence, and times before and after on recorded shapes. None is kept without them, and none but of a
kernel that was accepted. It is found again by the family of the operator, the class of its shapes and the target.
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
SHOWN = 6  # in a prompt
_ACTION = "move it away to begin a new one, or pass --no-skills"
MOST_TEXT = 300  # characters of a sentence
_CLASSES = ((4096, "up to 4,096 elements"), (65_536, "up to 65,536 elements"), (1 << 20, "up to 2^20 elements"))


def shape_class(elements: int) -> str:
    """The class of a shape whose largest tensor has so many elements, in words."""
    return next((words for most, words in _CLASSES if elements <= most), "more than 2^20 elements")


@dataclass(frozen=True)
class Support:
    """Times on one shape, in microseconds, each the median of so many rounds. before, after: sha256 of the kernels."""

    shape: str
    shape_class: str
    before_us: float
    after_us: float
    rounds: int
    before: str
    after: str


@dataclass(frozen=True)
class Skill:
    """text: one sentence. family: of operators (verify/operators.py, `group`). target: such as sm_90."""

    text: str
    family: str
    overload: str
    target: str
    support: tuple[Support, ...]

    def gain(self, classes: Collection[str]) -> float:
        """Of the times, the geometric mean over the shapes of these classes."""
        product, count = 1.0, 0
        for one in (s for s in self.support if s.shape_class in classes):
            product, count = product * one.before_us / one.after_us, count + 1
        return product ** (1 / count) if count else 0.0

    @property
    def line(self) -> str:
        first = max(self.support, key=lambda s: s.before_us / s.after_us)
        return (
            f"{self.text} (measured on {self.target}: {self.overload}, {first.shape}: {first.before_us:.1f} us before, "
            f"{first.after_us:.1f} us after; {len(self.support)} shapes)"
        )


class SkillStore:
    """The skills of a workspace."""

    def __init__(self, path: Path) -> None:
        """Raises UserError for a file that is not one of skills, of a version that is not known, or damaged."""
        self.path = path
        self.skills = _read(path) if path.exists() else []

    def add(self, skill: Skill) -> None:
        """Keep a skill, durably. Raises UserError for one that no measurement supports."""
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
        """Those of this family and target that are supported on shapes of these classes, the largest gains first."""
        found = [s for s in self.skills if s.family == family and s.target == target and s.gain(classes) > 1]
        return sorted(found, key=lambda s: -s.gain(classes))[:SHOWN]


def _read(path: Path) -> list[Skill]:
    try:
        first, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line] or [None]
        check_version(first, path, FORMAT, VERSION, action=_ACTION)
        return [validated(Skill, line) for line in lines]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not a file of skills ({error!r}); {_ACTION}") from error
