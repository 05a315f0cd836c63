from __future__ import annotations

import json
import re
import zlib
from contextlib import closing
from dataclasses import asdict

import pytest

from generate.journal import Journal, event_of, open_run, read_journal, runs_of, slug
from generate.llm import Message, Request
from generate.machine import DialogLimits, Event, EventKind, Stage, State
from generate.recording import has_answers
from traces import UserError

HEADER = {"overload": "aten::add.Tensor", "task": "abc", "limits": {}, "switches": {}}
EVENTS = [
    Event(EventKind.PROMPTED, messages=(Message("system", "s"), Message("user", "ü\n\r\u2028"))),
    Event(EventKind.ANSWERED, text="answer", prompt_tokens=3, completion_tokens=4),
    Event(EventKind.LINT_CLEAN, source="code"),
    Event(EventKind.TEST_FAILED, outcome="WRONG", report="r", counts={"PASS": 2, "WRONG": 1}),
]


@pytest.fixture
def journal(tmp_path):
    written = open_run(tmp_path, HEADER)
    for event in EVENTS:
        written.append_event(event)
    written.close()
    return written.path


def reopen(path):
    again = Journal(path, {})
    again.close()
    return again


def test_events_survive_the_disk(journal):
    assert [event_of(r) for r in read_journal(journal)[1:]] == EVENTS
    assert reopen(journal).dropped == ""


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_torn_tail_is_dropped_and_reported(journal, cut):
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-cut])
    again = reopen(journal)
    assert [event_of(r) for r in again.records[1:]] == EVENTS[:-1]
    assert "dropped" in again.dropped
    assert str(journal) in again.dropped
    assert reopen(journal).dropped == "", "what was torn is off the disk"


def test_a_torn_header_begins_anew(tmp_path):
    first = open_run(tmp_path, HEADER)
    first.close()
    first.path.write_bytes(first.path.read_bytes()[:10])
    again = open_run(tmp_path, HEADER)
    again.close()
    assert again.path == first.path
    assert again.header["task"] == "abc"
    assert "dropped 10 bytes" in again.dropped


@pytest.mark.parametrize("line", [0, 1, 3])
def test_damage_before_the_end_is_refused(journal, line):
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b'"', b"'", 1)
    journal.write_bytes(b"".join(lines))
    with pytest.raises(UserError, match=rf"line {line + 1} is damaged"):
        Journal(journal, {})
    with pytest.raises(UserError, match="is damaged"):
        read_journal(journal)


@pytest.mark.parametrize(("key", "value"), [("version", 3), ("format", "other")])
def test_an_unknown_version_is_refused(tmp_path, key, value):
    header = {"format": "enable-dialog", "version": 1, **HEADER, key: value}
    body = json.dumps(header, sort_keys=True)
    path = tmp_path / "aten.add.Tensor" / "run-001" / "journal.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(f'{body[:-1]}, "crc": "{zlib.crc32(body.encode()):08x}"}}\n')
    with pytest.raises(UserError, match="is unknown; this program reads enable-dialog 1, 2; move"):
        open_run(tmp_path, HEADER)


def test_a_run_of_version_1_goes_on(tmp_path):
    limits = {"dialogs": 2, "calls": 15, "context": 131_072, "temperature": 1.0, "report": 8_000}
    header = {**HEADER, "format": "enable-dialog", "version": 1, "limits": limits}
    path = tmp_path / "aten.add.Tensor" / "run-001" / "journal.jsonl"
    old = Journal(path, header)
    for event in EVENTS:
        old.append_event(event)
    old.close()
    now = asdict(DialogLimits(dialogs=2))
    with closing(open_run(tmp_path, {**HEADER, "limits": now})) as journal:
        assert journal.path == path
        assert journal.fold(State(DialogLimits(**journal.header["limits"]))).stage is Stage.FEEDBACK
    with closing(open_run(tmp_path, {**HEADER, "limits": now | {"repeats": 1}})) as journal:
        assert journal.directory.name == "run-002", "a limit that is not the default begins another run"


def test_a_torn_journal_can_be_read_while_it_is_written(journal):
    journal.write_bytes(journal.read_bytes()[:-20])
    assert [event_of(r) for r in read_journal(journal, torn=True)[1:]] == EVENTS[:-1]
    with pytest.raises(UserError, match="not fully written"):
        read_journal(journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], lines[1][:-9] + b"\n", *lines[2:]]))
    with pytest.raises(UserError, match="line 2 is damaged"):
        read_journal(journal, torn=True)


def test_others_may_not_read_a_run(journal):
    assert journal.parent.stat().st_mode & 0o077 == 0


def test_another_task_begins_another_run_and_keeps_the_old(tmp_path, journal):
    other = open_run(tmp_path, {**HEADER, "task": "def"})
    other.close()
    assert other.directory.name == "run-002"
    assert journal.exists()
    same = open_run(tmp_path, {**HEADER, "task": "def"})
    same.close()
    assert same.path == other.path
    restarted = open_run(tmp_path, {**HEADER, "task": "def"}, restart=True)
    restarted.close()
    assert restarted.directory.name == "run-003"


def test_the_run_after_the_thousandth_follows_it(tmp_path):
    for number in (999, 1000):
        (tmp_path / slug(HEADER["overload"]) / f"run-{number}").mkdir(parents=True)
    again = open_run(tmp_path, HEADER, restart=True)
    again.close()
    assert again.directory.name == "run-1001"
    assert [run.name for run in runs_of(again.directory.parent)] == ["run-999", "run-1000", "run-1001"]


def test_a_run_that_is_being_written_can_be_recorded(journal):
    whole = has_answers(journal)
    with journal.open("ab") as file:
        file.write(b'{"event": "answ')
    assert has_answers(journal) is whole


def test_two_processes_do_not_share_a_journal(tmp_path):
    first = open_run(tmp_path, HEADER)
    with pytest.raises(UserError, match="another process is working on this operator"):
        open_run(tmp_path, HEADER)
    first.close()


def test_a_resumption_undoes_the_failure_before_it(tmp_path):
    journal = open_run(tmp_path, HEADER)
    for event in [EVENTS[0], Event(EventKind.FAILED, text="down")]:
        journal.append_event(event)
    assert journal.fold(State(DialogLimits())).stage is Stage.ABORTED
    journal.append({"resumed": "down"})
    assert journal.fold(State(DialogLimits())).stage is Stage.GENERATE
    journal.append_event(EVENTS[1])
    assert journal.fold(State(DialogLimits())).stage is Stage.LINT
    journal.close()


def test_requests_are_noted_by_digest(tmp_path):
    journal = open_run(tmp_path, HEADER)
    messages = (Message("user", "secret plan"),)
    journal.append_request(Request(messages, 1.0, "generate", 1, tmp_path), "openai m")
    journal.append_request(Request(messages, 1.0, "summarize", 2, tmp_path), "replay")
    journal.close()
    first, second = read_journal(journal.path)[1:]
    assert "messages" not in first
    assert (first["model"], second["model"]) == ("openai m", "replay")
    assert second["messages"] == [{"role": "user", "content": "secret plan"}]
    assert first["request"] != second["request"]


@pytest.mark.parametrize("name", ["../etc", "aten::", "aten::a/b", "add.Tensor", "aten::add.Tensor.x", "aten::add\n"])
def test_only_overload_names_become_directories(name):
    with pytest.raises(UserError, match="is not the name of an overload"):
        slug(name)
    assert slug("aten::add.Tensor") == "aten.add.Tensor"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"event": "SLEPT"}, "kind = 'SLEPT': Input should be 'PROMPTED', "),
        ({"size": "many"}, "size = 'many': Input should be a valid integer"),
        ({"messages": [{"role": "user"}]}, "messages.0.content: is missing"),
        ({"text": ["x"]}, "text: Input should be a valid string"),
    ],
)
def test_an_event_with_a_wrong_field_is_named_in_one_line(change, message):
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        event_of({"event": "ANSWERED", **change})
    assert "\n" not in str(error.value)
