"""Validate a child's reply on one case; a reply is never proof for a kernel, but can be evidence against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verify.excerpts import MAX_PRINTED

_NAMES = ("operators", "launch_operators", "kernels", "types", "globals", "variants", "launched", "met")

MAX_REACHED = 20_000  # characters
_MORE: dict[str, Any] = {"printed": "", "digest": "", "reached": "", "configurations": 1}
_COSTS = ("seconds", "accessed", "lanes", "allocated", "widest")


class MalformedReply(Exception):
    """Error raised if a reply is not one that this toolkit's child sends."""


@dataclass(frozen=True)
class ToldAccess:
    """Invalid load or store.

    Attributes:
        kind: `bounds`, `alignment`, `race`, `argument`, `hint` or `undefined`.
        text: Position and description, in one line.
        snippet: Lines of the kernel around it, possibly empty.
        stores: True for a race in which only the value that remains is open, out of several stored to one place.
    """

    kind: str
    text: str
    snippet: str = ""
    stores: bool = False

    @property
    def report(self) -> str:
        return f"{self.text}\n{self.snippet}" if self.snippet else self.text


@dataclass(frozen=True)
class Reply:
    """Reply from a child on one case.

    Attributes:
        status: `ok` or `error`.
        text: Error text.
        operators: ATen operators that the wrapper called, besides memory and views.
        launch_operators: ATen operators called during launches.
        kernels: Launched kernels, by name.
        refused: Compiler log.
        outside: True if memory just outside an argument was written; only for a call that returned.
        scalars: Numbers that the wrapper read back to the host.
        threads: How many threads were still running at return.
        aliases_earlier: True if the result shares memory with an earlier result.
        types: Complaints about results that are no plain tensors.
        globals: Process state that was changed, by name.
        accesses: Invalid accesses by the kernels.
        variants: Names for the specialised forms that it launched.
        met: The job's marks (verify/judging/dialect.py) that the compiler met.
        lost: True if the child can run nothing more.
        printed: Wrapper output, cut to its beginning.
        launched: Kernel, grid and arguments for the first launches.
        digest: Digest over all launches.
        configurations: Most configurations in one autotuner.
        reached: Statements and comparisons that ran, as encoded by verify/child/reach.py.
        seconds: CPU time in interpreted kernels.
        accessed: How many loads, stores and atomics were made by program instances.
        lanes: How many lanes these accesses had.
        allocated: Bytes allocated by the wrapper.
        widest: Most program instances in a grid's y or z.
        log: Launches as encoded by verify/child/launch_log.py, if requested.
    """

    status: str
    text: str = ""
    operators: tuple[str, ...] = ()
    launch_operators: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    refused: str = ""
    outside: bool = False
    scalars: tuple[int | float | bool, ...] = ()
    threads: int = 0
    aliases_earlier: bool = False
    types: tuple[str, ...] = ()
    globals: tuple[str, ...] = ()
    accesses: tuple[ToldAccess, ...] = ()
    variants: tuple[str, ...] = ()
    met: tuple[str, ...] = ()
    lost: bool = False
    printed: str = ""
    launched: tuple[str, ...] = ()
    digest: str = ""
    configurations: int = 1
    reached: str = ""
    seconds: float = 0.0
    accessed: int = 0
    lanes: int = 0
    allocated: int = 0
    widest: int = 1
    log: dict[str, Any] | None = None

    @classmethod
    def read(cls, header: dict[str, Any]) -> Reply:
        """Validate a header; raise MalformedReply unless every field has its type."""
        status, text, refused = (header.get(k, "") for k in ("status", "text", "refused"))
        if status not in ("ok", "error") or not isinstance(text, str) or not isinstance(refused, str):
            raise MalformedReply(f"status is {str(status)[:80]!r}")
        scalars, threads = header.get("scalars", []), header.get("threads", 0)
        if not _all(scalars, int | float) or not isinstance(threads, int):
            raise MalformedReply("scalars or threads are no numbers")
        printed, digest, reached, configurations = (header.get(k, d) for k, d in _MORE.items())
        if not (_all([printed, digest, reached], str) and isinstance(configurations, int)):
            raise MalformedReply("printed, digest or reached is no text, or configurations no number")
        fields: dict[str, Any] = {name: header.get(name, getattr(cls, name)) for name in _COSTS}
        if not _all(list(fields.values()), int | float):
            raise MalformedReply("a cost is no number")
        fields |= {name: _names(header, name) for name in _NAMES}
        return cls(
            status,
            text,
            printed=printed[:MAX_PRINTED],
            refused=refused,
            digest=digest,
            reached=reached[:MAX_REACHED],
            configurations=configurations,
            outside=status == "ok" and header.get("outside") is not False,
            scalars=tuple(scalars),
            threads=threads,
            aliases_earlier=header.get("aliases_earlier", False) is not False,
            accesses=_accesses(header.get("accesses", [])),
            lost=header.get("lost", False) is not False,
            log=header["log"] if isinstance(header.get("log"), dict) else None,
            **fields,
        )


def _all(values: Any, kind: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _names(header: dict[str, Any], name: str) -> tuple[str, ...]:
    names = header.get(name, [])
    if not _all(names, str):
        raise MalformedReply(f"{name} is no list of names")
    return tuple(text[:200] for text in names[:100])


def _accesses(entries: Any) -> tuple[ToldAccess, ...]:
    if not _all(entries, dict):
        raise MalformedReply("accesses is no list of accesses")
    texts = [[a.get("kind"), a.get("text"), a.get("snippet", "")] for a in entries]
    stores = [a.get("stores") is True for a in entries]
    if not all(_all(t, str) for t in texts):
        raise MalformedReply("an access is not described by texts")
    described = zip(texts[:20], stores, strict=False)
    return tuple(
        ToldAccess(kind[:40], text[:400], lines[:1000], only_stores) for (kind, text, lines), only_stores in described
    )
