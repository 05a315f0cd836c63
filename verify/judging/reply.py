"""What a child says of one case: never proof, but enough against a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verify.excerpts import MAX_PRINTED

_NAMES = ("operators", "launch_operators", "kernels", "types", "globals", "variants", "launched")

MAX_REACHED = 20_000  # characters
_MORE: dict[str, Any] = {"printed": "", "digest": "", "reached": "", "configurations": 1}
_COSTS = ("seconds", "accessed", "lanes", "allocated", "widest")


class MalformedReply(Exception):
    """A child sent what no child of ours sends."""


@dataclass(frozen=True)
class ToldAccess:
    """A load or store that must not be. kind: bounds, alignment, race or argument. text: where and how, in a line.

    snippet: the kernel's lines around it, which may be nothing. stores: of a race that all that is open is which of
    several values that are stored in one place stays there.
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
    """A child's word on one case.

    status: ok or error, with the error's text. operators: what the wrapper asked of ATen besides memory and views;
    launch_operators: what launches asked. kernels: names of those launched. refused: the compiler's log. outside:
    memory just outside an argument was written, told of a call that returned. scalars: numbers read back to the host.
    threads: still running at return. aliases_earlier: the result shares memory with that of an earlier case. types:
    complaints of results that are no plain tensors. globals: state that was changed. accesses: of the kernels.
    variants: names of what the launches were specialised to. lost: the child can run nothing more. printed: the
    beginning of what the wrapper printed. launched: of the first launches the kernel, grid and arguments; digest: of
    all of them. configurations: of the autotuner that has most. reached: statements and comparisons of the kernel file,
    as verify/child/reach.py tells them. seconds: of CPU time in kernels that were interpreted; accessed, lanes: loads,
    stores and atomics of their programs, and lanes of these; allocated: bytes, by the wrapper; widest: the most
    programs of a grid in y or z. log: what was launched, as verify/child/launch_log.py tells it where it is asked.
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
        """Raises MalformedReply unless every field is of its kind."""
        status, text, refused = (header.get(k, "") for k in ("status", "text", "refused"))
        if status not in ("ok", "error") or not isinstance(text, str) or not isinstance(refused, str):
            raise MalformedReply(f"status is {str(status)[:80]!r}")
        scalars, threads = header.get("scalars", []), header.get("threads", 0)
        if not _all(scalars, int | float) or not isinstance(threads, int):
            raise MalformedReply("scalars or threads are no numbers")
        printed, digest, reached, configurations = (header.get(k, d) for k, d in _MORE.items())
        if not (_all([printed, digest, reached], str) and isinstance(configurations, int)):
            raise MalformedReply("printed, digest or reached is no text, or configurations no number")
        several: dict[str, Any] = {name: header.get(name, getattr(cls, name)) for name in _COSTS}
        if not _all(list(several.values()), int | float):
            raise MalformedReply("a cost is no number")
        several |= {name: _names(header, name) for name in _NAMES}
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
            **several,
        )


def _all(values: Any, kind: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _names(header: dict[str, Any], name: str) -> tuple[str, ...]:
    found = header.get(name, [])
    if not _all(found, str):
        raise MalformedReply(f"{name} is no list of names")
    return tuple(text[:200] for text in found[:100])


def _accesses(found: Any) -> tuple[ToldAccess, ...]:
    if not _all(found, dict):
        raise MalformedReply("accesses is no list of accesses")
    texts = [[a.get("kind"), a.get("text"), a.get("snippet", "")] for a in found]
    stores = [a.get("stores") is True for a in found]
    if not all(_all(t, str) for t in texts):
        raise MalformedReply("an access is not described by texts")
    told = zip(texts[:20], stores, strict=False)
    return tuple(ToldAccess(kind[:40], text[:400], lines[:1000], of) for (kind, text, lines), of in told)
