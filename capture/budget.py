"""Fair division of a trace's bytes among operators."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable


class BlobBudget:
    """At most `limit` bytes, shared max-min fairly: a newcomer takes from an owner that would still have more than it.

    Blobs with `large` bytes or more can be taken back; smaller ones stay.

    Attributes:
        used: Bytes in use.
        fenced: Bytes that were in use at the fence.
    """

    def __init__(self, limit: int, large: int) -> None:
        self.used = 0
        self.fenced = 0  # bytes in use at the fence
        self._limit = limit
        self._large = large
        self._sizes: dict[Hashable, tuple[str, int]] = {}  # owner and length of each blob
        self._usage: Counter[str] = Counter()
        self._large_blobs: dict[str, list[Hashable]] = defaultdict(list)  # by owner, latest last

    def __contains__(self, token: Hashable) -> bool:
        return token in self._sizes

    def admit(self, owner: str, wanted: dict[Hashable, int], keep: bool = False) -> list[Hashable] | None:
        """Make room for all blobs or none.

        Args:
            owner: The operator that stores them.
            wanted: Sizes in bytes, by token.
            keep: True if these blobs can never be taken back.

        Returns:
            list | None: The blobs to give up, or None if `owner` gets no more bytes.
        """
        need = sum(wanted.values())
        freed = [] if self.used + need <= self._limit else self._freed(owner, need)
        if freed is None:
            return None
        for token in freed:
            self.release(token)
        for token, nbytes in wanted.items():
            self._sizes[token] = (owner, nbytes)
            self._usage[owner] += nbytes
            self.used += nbytes
            if nbytes >= self._large and not keep:
                self._large_blobs[owner].append(token)
        return freed

    def _freed(self, owner: str, need: int) -> list[Hashable] | None:
        """Return the blobs to give up for `need` more bytes, or None."""
        freed: list[Hashable] = []
        spared = Counter(self._usage)
        stacks = {name: list(tokens) for name, tokens in self._large_blobs.items() if tokens}
        # Take from the richest owner, latest blob first, as long as it has more than the newcomer would have.
        while self.used + need - sum(self._sizes[t][1] for t in freed) > self._limit:
            rich = max(stacks, key=lambda name: spared[name], default=None)
            if rich is None or rich == owner or spared[rich] <= spared[owner] + need:
                return None
            token = stacks[rich].pop()
            spared[rich] -= self._sizes[token][1]
            freed.append(token)
            if not stacks[rich]:
                del stacks[rich]
        return freed

    def fence(self) -> None:
        """Protect all current blobs from being taken back."""
        self.fenced = self.used
        self._large_blobs.clear()

    def release(self, token: Hashable) -> None:
        """Remove a blob from the budget."""
        owner, nbytes = self._sizes.pop(token)
        self._usage[owner] -= nbytes
        self.used -= nbytes
        if token in self._large_blobs[owner]:
            self._large_blobs[owner].remove(token)
