"""Recorded dialogs: their file format, how a conversation finds its answer again, and how a journal becomes one.

A recording is JSON lines: a header with format and version, then one line a message, in order, with the number of its
conversation. An assistant's message answers all messages of its conversation before it; `cut` and `size` are those of
the Answer where they say anything.
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
_SHOWN = 12  # lines of a difference


@dataclass(frozen=True)
class Exchange:
    """One recorded answer. where: file and position, for messages."""

    messages: tuple[Message, ...]
    answer: Answer
    where: str


def masked(text: str) -> str:
    """The text with every number as `#` and every run of blanks as one: numerics differ between CPUs."""
    return re.sub(r"[ \t]+", " ", _NUMBER.sub("#", text))


def key(messages: Sequence[Message]) -> str:
    """sha256 of roles and masked contents."""
    return hashlib.sha256(json.dumps([[m.role, masked(m.content)] for m in messages]).encode()).hexdigest()


def load_recordings(directory: Path, names: str = "*.jsonl") -> list[Exchange]:
    """Every exchange of the files of these names in `directory`, in order of names. Raises UserError."""
    return [exchange for path in sorted(directory.glob(names)) for exchange in _exchanges(path)]


def overloads_in(directory: Path) -> frozenset[str]:
    """The operators that the recordings in `directory` are of. Raises UserError."""
    return frozenset(overload_of(path) for path in directory.glob("*.jsonl"))


def overload_of(path: Path) -> str:
    """The operator that one recording is of. Raises UserError."""
    with open(path, encoding="utf-8") as file:
        header = _parsed(file.readline(), path, 1)
    check_version(header, path, FORMAT, VERSION)
    return str(header.get("overload", ""))


def _exchanges(path: Path) -> Iterator[Exchange]:
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
    try:
        record = json.loads(line)
    except ValueError as error:
        raise UserError(f"{path}: line {number}: not JSON ({error})") from error
    if not isinstance(record, dict):
        raise UserError(f"{path}: line {number}: not a record")
    return record


def nearest_difference(messages: Sequence[Message], exchanges: Sequence[Exchange]) -> str:
    """Which recorded conversation is nearest, and the first lines in which this one differs from it."""
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
    return [line for m in messages for line in [f"<{m.role}>", *masked(m.content).splitlines()]]


def has_answers(journal: Path) -> bool:
    """Whether a model answered anything in this run. Raises UserError if the journal is damaged."""
    return bool(_conversations(read_journal(journal)))


def to_recording(journal: Path, target: Path, *further: Path) -> Path:
    """Write the dialogs of a journal (whatever provider answered them), and of further ones of the same operator, as a
    recording. Raises UserError."""
    records = read_journal(journal)
    header = {"format": FORMAT, "version": VERSION, "overload": records[0].get("overload", "")}
    lines = [header]
    conversations = [c for path in (journal, *further) for c in _conversations(read_journal(path))]
    for number, messages in enumerate(conversations, 1):
        lines += [{"conversation": number, **m} for m in messages]
    target.parent.mkdir(parents=True, exist_ok=True)
    write_durably(target, (f"{json.dumps(line)}\n".encode() for line in lines))
    return target


def _conversations(records: Sequence[Record]) -> list[list[dict[str, Any]]]:
    """Every dialog up to its last answer, and every summary with its request; a dict a message."""
    dialogs: list[list[dict[str, Any]]] = []
    summaries: list[list[dict[str, Any]]] = []
    asked: list[dict[str, Any]] = []
    state = before = State(DialogLimits(**records[0]["limits"]))
    for record in records:
        if "request" in record:
            asked = record.get("messages", [])
        elif "resumed" in record:
            state = before
        elif "event" in record:
            event = event_of(record)
            before, state = state, step(state, event)
            if event.kind is EventKind.PROMPTED:
                dialogs.append([])
            elif event.kind is EventKind.ANSWERED:
                told = {name: value for name in ("cut", "size") if (value := getattr(event, name))}
                new = [asdict(m) for m in state.messages[len(dialogs[-1]) :]]
                dialogs[-1] += [*new[:-1], {**new[-1], **told}]
            elif event.kind is EventKind.SUMMARIZED:
                summaries.append([*asked, {"role": "assistant", "content": event.report}])
    return [d for d in dialogs if d] + summaries
