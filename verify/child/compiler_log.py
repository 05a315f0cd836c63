"""Format messages from Triton's compiler, with their positions as lines of the kernel file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from verify.linking import told_line

_PLACE = re.compile(r"^at (\d+):(\d+):", re.MULTILINE)  # line and column within one function's source


def compiler_log(error: BaseException, file: str) -> str:
    """Return the type and text of an error and its causes: the caller's line first, the message at the end.

    Args:
        error: Error raised by the compiler.
        file: Kernel file text. Triton counts lines from the function's `def`.
    """
    messages: list[str] = []
    for cause in _causes(error):
        if not any(str(cause) in text for text in messages):
            messages.append(f"{type(cause).__name__}: {_placed(cause, file)}")
    return "\n".join(messages)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _placed(error: BaseException, file: str) -> str:
    source = getattr(error, "src", None) or ""
    start = file.find(source) if source else -1
    if start < 0:  # not a function in this file; Triton's own library is compiled in the same way
        return str(error)
    before = file.count("\n", 0, start)
    return _PLACE.sub(lambda m: f"at {told_line(file, before + int(m[1]))}, column {m[2]}:", str(error), count=1)


def headline(log: str) -> str:
    """Return a compiler log as one line.

    Triton prints the position first, then the source, and the message last. The tools that it runs mark the
    message with `error:`, and Triton appends the command that repeats them.
    """
    lines = [line.strip() for line in log.split("\n") if line.strip()] or ["no log"]
    errors = (re.search(r"\berror\s*:.*", line) for line in lines[1:])
    message = next((match[0] for match in errors if match), lines[-1])
    if "Block pointers have been removed" in log:  # since Triton 3.7
        message += " (write tl.make_tensor_descriptor, or pointers: base + offsets)"
    return " ".join(dict.fromkeys((lines[0], message)))
