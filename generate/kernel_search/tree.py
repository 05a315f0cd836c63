"""Keep the candidates in a tree, and select the node to expand.

The selection is a pure function, so a journal always gives the same tree. It uses UCT (Kocsis and Szepesvari,
2006). Starting at the root, it descends as long as the node has CHILDREN correct children. It takes the child
with the largest mean reward + EXPLORATION sqrt(ln(visits of the parent) / visits). A node's reward is limit /
time, or 0 if it is not correct.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

CHILDREN = 2  # correct children that a node needs before the selection descends to them
EXPLORATION = 0.5  # rewards in a campaign differ by a few tenths; with the usual sqrt(2) no node is visited twice


class Move(StrEnum):
    """The ways to create a child."""

    ROOT = "in force"
    INHERIT = "inherit"  # from its parent, with the parent's times
    COMBINE = "combine"  # from the best two candidates
    COMPARE = "compare"  # from its parent, with the times for all other candidates
    ANEW = "clean slate"  # from the contract alone


@dataclass(frozen=True)
class TreeNode:
    """One candidate.

    Attributes:
        number: Number; the root is 0.
        move: Way it was created.
        parents: Numbers of the nodes it was created from; the first is its parent in the tree.
        outcome: PASSED, the final stage of its dialog, or LOST if the kernel could not be timed.
        source: Kernel file; None if there is no correct one.
        reward: Ratio of limit to time, geometric mean over shapes.
        mean: Speedup over the kernel in force; 0 if it was not timed.
        noise: Noise factor for the speedup.
        learned: The model's lesson.
        detail: Reason for a failure or a refusal.
        calls: LLM calls.
    """

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
        """Return True if the kernel was judged correct and was timed."""
        return self.mean > 0


@dataclass
class Tree:
    """The tree.

    Attributes:
        nodes: Nodes by number; the first is the kernel in force.
    """

    nodes: list[TreeNode] = field(default_factory=list)

    def children(self, number: int) -> list[TreeNode]:
        """Return a node's children."""
        return [n for n in self.nodes if n.parents[:1] == (number,)]

    def best(self, count: int = 1) -> list[TreeNode]:
        """Return the fastest correct nodes with different texts, fastest first."""
        ranked = sorted((n for n in self.nodes if n.right), key=lambda n: (-n.mean, n.number))
        fastest: dict[str | None, TreeNode] = {}
        for node in ranked:
            fastest.setdefault(node.source, node)
        return [*fastest.values()][:count]

    def next(self) -> tuple[Move, tuple[int, ...]]:
        """Return the move for the next child, and the numbers of the nodes it starts from.

        Moves alternate in a cycle of five: INHERIT, COMPARE, COMPARE, COMBINE, ANEW. If there are fewer than
        two correct texts, INHERIT replaces COMBINE.
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
        """Return the node to expand."""
        node = self.nodes[0]
        while True:
            children = [n for n in self.children(node.number) if n.right]
            if len(children) < CHILDREN:
                return node
            visits = self._visits(node.number)
            node = max(children, key=lambda n: (self._mean(n.number) + self._bonus(n.number, visits), -n.number))

    def _bonus(self, number: int, above: int) -> float:
        """Return the UCT exploration term."""
        return EXPLORATION * math.sqrt(math.log(above) / self._visits(number))

    def _below(self, number: int) -> Sequence[TreeNode]:
        """Return a node and all its descendants."""
        return [self.nodes[number], *(n for c in self.children(number) for n in self._below(c.number))]

    def _visits(self, number: int) -> int:
        """Return the number of nodes in the subtree."""
        return len(self._below(number))

    def _mean(self, number: int) -> float:
        """Return the mean reward in the subtree."""
        subtree = self._below(number)
        return sum(n.reward for n in subtree) / len(subtree)
