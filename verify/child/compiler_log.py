"""What Triton's compiler says of a kernel: every message, with its place as a line of the kernel file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from verify.linking import told_line

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
    return _PLACE.sub(lambda m: f"at {told_line(file, before + int(m[1]))}, column {m[2]}:", str(error), count=1)


def headline(log: str) -> str:
    """A compiler's log in a line: Triton puts the place first, the source in between and the message last; the tools
    that it runs call theirs an error, and it puts the command that repeats them last."""
    lines = [line.strip() for line in log.split("\n") if line.strip()] or ["no log"]
    errors = (re.search(r"\berror\s*:.*", line) for line in lines[1:])
    message = next((found[0] for found in errors if found), lines[-1])
    if "Block pointers have been removed" in log:  # from Triton 3.7 on
        message += " (write tl.make_tensor_descriptor, or pointers: base + offsets)"
    return " ".join(dict.fromkeys((lines[0], message)))
