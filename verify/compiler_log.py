"""What Triton's compiler says of a kernel: every message, with its place as a line of the kernel file."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PLACE = re.compile(r"^at (\d+):(\d+):", re.MULTILINE)  # line and column within one function's source


def compiler_log(error: BaseException, file: str) -> str:
    """Type and text of an error and of each of its causes: the caller's line first, the message at the end.

    file: the text of the kernel file, of which Triton names lines from the function's `def` on.
    """
    told: list[str] = []
    for cause in _causes(error):
        if not any(str(cause) in text for text in told):
            told.append(f"{type(cause).__name__}: {_placed(cause, file)}")
    return "\n".join(told)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _placed(error: BaseException, file: str) -> str:
    source = getattr(error, "src", None) or ""
    start = file.find(source) if source else -1
    if start < 0:  # no function of this file: Triton's own library is compiled the same way
        return str(error)
    before = file.count("\n", 0, start)
    return _PLACE.sub(lambda m: f"at line {before + int(m[1])}, column {m[2]}:", str(error), count=1)
