"""Candidates as a tree, and which of them is gone on from: pure, so that a journal gives the same tree again.

A node is chosen by UCT (Kocsis and Szepesvari, 2006): from the root on to the child with the largest sum of its mean
reward and EXPLORATION sqrt(ln(visits of the parent) / visits), as long as a node has CHILDREN children. The reward of a
node is the ratio of the limit to its time, 0 if it is not right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

CHILDREN = 2  # of a node before its children are gone on from
EXPLORATION = 0.5  # rewards of a campaign lie within a few tenths of each other; sqrt(2) would look at nothing twice


class Move(StrEnum):
    """How a child comes about."""

    ROOT = "in force"
    INHERIT = "inherit"  # from its parent, whose times are told
    COMBINE = "combine"  # from the best two
    COMPARE = "compare"  # from its parent, with what all others were measured at
    ANEW = "clean slate"  # from the contract alone


@dataclass(frozen=True)
class TreeNode:
    """One candidate. parents: the first is where it hangs. outcome: PASSED, or how its dialog ended; LOST where the
    kernel could not be timed. source: the kernel, None if there is none that is right. reward: see above. mean, noise:
    of its gain. learned: what the model says of it."""

    number: int
    move: Move
    parents: tuple[int, ...] = ()
    outcome: str = ""
    source: str | None = None
    reward: float = 0.0
    mean: float = 0.0
    noise: float = 1.0
    learned: str = ""
    detail: str = ""
    calls: int = 0

    @property
    def right(self) -> bool:
        """Whether it is a kernel that was judged right, and was timed."""
        return self.mean > 0


@dataclass
class Tree:
    """nodes: by number; the first is the kernel in force."""

    nodes: list[TreeNode] = field(default_factory=list)

    def children(self, number: int) -> list[TreeNode]:
        return [n for n in self.nodes if n.parents[:1] == (number,)]

    def best(self, count: int = 1) -> list[TreeNode]:
        """The fastest right ones, of different texts."""
        ranked = sorted((n for n in self.nodes if n.right), key=lambda n: (-n.mean, n.number))
        return list({n.source: n for n in reversed(ranked)}.values())[::-1][:count]

    def next(self) -> tuple[Move, tuple[int, ...]]:
        """How the next child comes about, and from which nodes.

        Moves take turns over the tree; one that needs more right candidates than there are is left to the next.
        """
        parent = self.chosen()
        turn = len(self.nodes) - 1
        if turn % 5 == 4:
            return Move.ANEW, (0,)
        if turn % 5 == 3 and len(best := self.best(2)) == 2:
            return Move.COMBINE, tuple(n.number for n in best)
        if turn % 5 in (1, 2) and len(self.nodes) > 1:
            return Move.COMPARE, (parent.number,)
        return Move.INHERIT, (parent.number,)

    def chosen(self) -> TreeNode:
        """The node that is gone on from."""
        node = self.nodes[0]
        while True:
            children = [n for n in self.children(node.number) if n.right]
            if len(children) < CHILDREN:
                return node
            visits = self._visits(node.number)
            node = max(children, key=lambda n: (self._mean(n.number) + self._bonus(n.number, visits), -n.number))

    def _bonus(self, number: int, above: int) -> float:
        return EXPLORATION * math.sqrt(math.log(above) / self._visits(number))

    def _below(self, number: int) -> Sequence[TreeNode]:
        """A node and all that come of it."""
        return [self.nodes[number], *(n for c in self.children(number) for n in self._below(c.number))]

    def _visits(self, number: int) -> int:
        return len(self._below(number))

    def _mean(self, number: int) -> float:
        below = self._below(number)
        return sum(n.reward for n in below) / len(below)
