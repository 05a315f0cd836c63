"""Define the conditions of judging a case, which are part of a verdict's key."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Conditions:
    """Conditions for judging a case.

    Attributes:
        strict: Results need ATen's strides.
        allowed: ATen operators that the wrapper may call besides memory and views.
        off: Layers that are switched off.
        repeated: The case is repeated, in other orders and with other contents.
        sandbox: How the child was confined.
    """

    strict: bool = True
    allowed: frozenset[str] = frozenset()
    off: frozenset[str] = frozenset()
    repeated: bool = False
    sandbox: str = ""

    @property
    def full(self) -> bool:
        """Return True if every layer is on, with the requirements for library kernels; only such verdicts count."""
        return self.strict and not self.allowed and not self.off

    def covers(self, other: Conditions) -> bool:
        """Return True if a pass under these conditions implies a pass under `other`."""
        return (
            (self.strict, self.sandbox) == (other.strict, other.sandbox)
            and self.allowed <= other.allowed
            and self.off <= other.off
            and self.repeated >= other.repeated
        )
