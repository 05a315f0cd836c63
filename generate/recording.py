"""Read and write recorded dialogs, look up answers in them, and convert journals to recordings.

A recording is a JSON Lines file: a header with format and version, then one line per message in order, with the number
of its conversation. An assistant's message answers all earlier messages in its conversation. `cut` and `size` have the
meaning of the Answer fields, and are present only if set.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from generate.journal import Record, event_of, read_journal
from generate.llm import Answer, Message
from generate.machine import DialogLimits, EventKind, State, step
from generate.validation import check_version
from traces import UserError
from traces.format import write_durably

FORMAT = "enable-recording"
VERSION = 1

_NUMBER = re.compile(r"(?<![A-Za-z_0-9.])[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_SHOWN = 12  # maximum number of lines in a printed difference


@dataclass(frozen=True)
class Exchange:
    """One recorded answer.

    Attributes:
        messages: The conversation before the answer.
        answer: The answer.
        where: File and line, for messages.
    """

    messages: tuple[Message, ...]
    answer: Answer
    where: str


def masked(text: str) -> str:
    """Return the text with each number as `#` and each run of blanks as one blank.

    Two prompts then match although their numerics differ between CPUs.
    """
    return re.sub(r"[ \t]+", " ", _NUMBER.sub("#", text))


def key(messages: Sequence[Message]) -> str:
    """Return the SHA-256 over roles and masked contents."""
    return hashlib.sha256(json.dumps([[m.role, masked(m.content)] for m in messages]).encode()).hexdigest()


def load_recordings(directory: Path, names: str = "*.jsonl") -> list[Exchange]:
    """Return all exchanges in the matching files, in order of file names.

    Args:
        directory: Directory with recordings.
        names: Glob pattern for file names.

    Raises:
        UserError: If a file is damaged.
    """
    return [exchange for path in sorted(directory.glob(names)) for exchange in _exchanges(path)]


def overloads_in(directory: Path) -> frozenset[str]:
    """Return the operators with a recording in `directory`. Raises UserError if a file is damaged."""
    return frozenset(overload_of(path) for path in directory.glob("*.jsonl"))


def overload_of(path: Path) -> str:
    """Return a recording's operator. Raises UserError if the file is damaged."""
    with open(path, encoding="utf-8") as file:
        header = _parsed(file.readline(), path, 1)
    check_version(header, path, FORMAT, VERSION)
    return str(header.get("overload", ""))


def _exchanges(path: Path) -> Iterator[Exchange]:
    """Yield the exchanges in a file."""
    conversations: dict[int, list[Message]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        record = _parsed(line, path, number)
        if number == 1:
            check_version(record, path, FORMAT, VERSION)
            continue
        try:
            message = Message(record["role"], record["content"])
            conversation = conversations.setdefault(record["conversation"], [])
        except KeyError as error:
            raise UserError(f"{path}: line {number}: a message without {error}") from error
        if message.role == "assistant":
            answer = Answer(message.content, cut=bool(record.get("cut")), size=int(record.get("size", 0)))
            yield Exchange(tuple(conversation), answer, f"{path.name} line {number}")
        conversation.append(message)


def _parsed(line: str, path: Path, number: int) -> dict[str, Any]:
    """Return a line's record, or raise UserError if it is not a JSON object."""
    try:
        record = json.loads(line)
    except ValueError as error:
        raise UserError(f"{path}: line {number}: not JSON ({error})") from error
    if not isinstance(record, dict):
        raise UserError(f"{path}: line {number}: not a record")
    return record


def nearest_difference(messages: Sequence[Message], exchanges: Sequence[Exchange]) -> str:
    """Return text that names the nearest recorded conversation and shows the first lines that differ."""
    if not exchanges:
        return "There are no recordings."
    wanted = _lines(messages)

    def similarity(exchange: Exchange) -> float:
        matcher = difflib.SequenceMatcher(None, wanted, _lines(exchange.messages), autojunk=False)
        return matcher.quick_ratio()

    nearest = max(exchanges, key=similarity)
    changes = difflib.unified_diff(_lines(nearest.messages), wanted, "recorded", "now", n=0, lineterm="")
    lines = [line for line in changes if not line.startswith(("---", "+++", "@@"))]
    more = f"\n  ... {len(lines) - _SHOWN} more lines" if len(lines) > _SHOWN else ""
    shown = "\n".join(f"  {line[:160]}" for line in lines[:_SHOWN])
    return f"Nearest: {nearest.where}; - recorded, + now:\n{shown}{more}"


def _lines(messages: Sequence[Message]) -> list[str]:
    """Return the conversation as masked lines."""
    return [line for m in messages for line in [f"<{m.role}>", *masked(m.content).splitlines()]]


def has_answers(journal: Path) -> bool:
    """Return True if a model answered at least once in this run.

    Raises:
        UserError: If the journal is damaged.
    """
    return bool(_conversations(read_journal(journal, torn=True)))


def to_recording(journal: Path, target: Path, *further: Path) -> Path:
    """Write a journal's dialogs as a recording, for any provider that answered them.

    Args:
        journal: Journal.
        target: File to write.
        *further: Journals for the same operator to append.

    Returns:
        `target`.

    Raises:
        UserError: If a journal is damaged.
    """
    records = read_journal(journal, torn=True)
    header = {"format": FORMAT, "version": VERSION, "overload": records[0].get("overload", "")}
    lines = [header]
    conversations = [c for path in (journal, *further) for c in _conversations(read_journal(path, torn=True))]
    for number, messages in enumerate(conversations, 1):
        lines += [{"conversation": number, **m} for m in messages]
    target.parent.mkdir(parents=True, exist_ok=True)
    write_durably(target, (f"{json.dumps(line)}\n".encode() for line in lines))
    return target


def _conversations(records: Sequence[Record]) -> list[list[dict[str, Any]]]:
    """Return each dialog up to its last answer, and each summary with its request; one dictionary per message."""
    dialogs: list[list[dict[str, Any]]] = []
    summaries: list[list[dict[str, Any]]] = []
    summary_messages: list[dict[str, Any]] = []
    state = before = State(DialogLimits(**records[0]["limits"]))
    for record in records:
        if "request" in record:
            summary_messages = record.get("messages", [])
        elif "resumed" in record:
            state = before
        elif "event" in record:
            event = event_of(record)
            before, state = state, step(state, event)
            if event.kind is EventKind.PROMPTED:
                dialogs.append([])
            elif event.kind is EventKind.ANSWERED:
                flags = {name: value for name in ("cut", "size") if (value := getattr(event, name))}
                new = [asdict(m) for m in state.messages[len(dialogs[-1]) :]]
                dialogs[-1] += [*new[:-1], {**new[-1], **flags}]
            elif event.kind is EventKind.SUMMARIZED:
                summaries.append([*summary_messages, {"role": "assistant", "content": event.report}])
    return [d for d in dialogs if d] + summaries
