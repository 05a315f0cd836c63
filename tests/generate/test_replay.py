"""Recordings, the replay provider and the manual provider."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from generate.dialog import open_journal, refine_operator
from generate.llm import Answer, Message, Options, ProviderError, Request, load_provider
from generate.machine import Stage
from generate.recording import key, load_recordings, masked, to_recording
from generate.task import Task
from traces import UserError
from verify.outcome import Outcome, Verdict

GOOD = (Path(__file__).parents[2] / "generate" / "examples" / "exp.py").read_text()
TASK = Task(
    overload="aten::exp",
    schemas=("aten::exp(Tensor self) -> Tensor",),
    dtypes=("float32",),
    path="x.py",
    command="enable refine --op aten::exp --llm manual",
)
BAD = f"```python\n{GOOD.replace('tl.exp', 'tl.log')}```"
FENCED = f"```python\n{GOOD}```"


def judge_of(worst, report="worst at [3]: expected 1.0, got {worst}"):
    def tester(source):
        if "tl.log(" in source:
            return [Verdict("c", Outcome.WRONG, "", report.format(worst=worst))]
        return [Verdict("c", Outcome.PASS)]

    return tester


def refine(model, dialogs, tester, restart=False):
    journal = open_journal(dialogs, TASK, restart=restart)
    try:
        return refine_operator(TASK, model, tester, journal), journal
    finally:
        journal.close()


def record(tmp_path, report="worst at [3]: expected 1.0, got {worst}"):
    """A dialog answered by hand, as a recording."""
    dialogs = tmp_path / "manual"
    model = load_provider("manual")
    tester = judge_of("1.5", report)
    answers = [BAD, FENCED] if len(report) < 8_000 else [BAD, "the summary", FENCED]
    for answer in answers:
        result, journal = refine(model, dialogs, tester)
        assert result.waiting is not None
        assert result.waiting.prompt.is_file()
        result.waiting.answer.write_text(answer)
    result, journal = refine(model, dialogs, tester)
    assert result.passed
    return to_recording(journal.path, tmp_path / "recordings" / "exp.jsonl")


def test_manual_says_what_to_write_and_what_to_type(tmp_path):
    result, journal = refine(load_provider("manual"), tmp_path, judge_of("1"))
    prompt, answer = journal.directory / "001-prompt.md", journal.directory / "001-answer.md"
    assert result.stage is Stage.GENERATE
    assert result.cause == (
        f"read {prompt} and write the answer to {answer}, then run: enable refine --op aten::exp --llm manual"
    )
    text = prompt.read_text()
    assert text.startswith("<!-- system -->\n\nYou write Triton kernels")
    assert "<!-- user -->\n\nWrite the kernel file for `aten::exp`." in text
    answer.write_text("  \n")
    assert refine(load_provider("manual"), tmp_path, judge_of("1"))[0].waiting is not None, "an empty file waits"


def test_prompts_and_recordings_are_on_the_disk_when_written(tmp_path, monkeypatch):
    """Each file, and the directory that names it, is synchronised; nothing temporary stays."""
    synced, fsync = set(), os.fsync

    def noting(descriptor):
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    recording = record(tmp_path)
    prompt = next(tmp_path.rglob("001-prompt.md"))
    assert {p.stat().st_ino for p in (recording, recording.parent, prompt, prompt.parent)} <= synced
    assert not list(tmp_path.rglob("*.tmp"))


def test_manual_refuses_an_answer_to_another_prompt(tmp_path):
    model = load_provider("manual")
    request = Request((Message("user", "a"),), 1.0, "generate", 7, tmp_path)
    (tmp_path / "007-prompt.md").write_text("something else")
    (tmp_path / "007-answer.md").write_text("answer")
    with pytest.raises(ProviderError, match=r"007-answer.md answers another prompt than 007-prompt.md"):
        model.complete(request)


@pytest.mark.parametrize("report", ["worst at [3]: expected 1.0, got {worst}", "line {worst} error\n" * 1_000])
def test_a_recording_replays_with_other_numbers(tmp_path, report):
    record(tmp_path, report)
    model = load_provider("replay", Options(recordings=tmp_path / "recordings"))
    result, _ = refine(model, tmp_path / "again", judge_of("-1.4999e-05", report))
    assert result.passed
    assert result.source == GOOD


def test_any_providers_dialog_becomes_the_same_recording(tmp_path):
    first = record(tmp_path)
    model = load_provider("replay", Options(recordings=tmp_path / "recordings"))
    _, journal = refine(model, tmp_path / "again", judge_of("1.5"))
    assert to_recording(journal.path, tmp_path / "second.jsonl").read_text() == first.read_text()


def test_a_miss_shows_the_nearest_recording_and_what_differs(tmp_path):
    record(tmp_path)
    model = load_provider("replay", Options(recordings=tmp_path / "recordings"))
    result, _ = refine(model, tmp_path / "again", judge_of("1.5", "quite another failure"))
    assert result.stage is Stage.ABORTED
    assert f"no recorded answer in {tmp_path / 'recordings'} to call 2" in result.cause
    assert "Nearest: exp.jsonl line 6; - recorded, + now:" in result.cause
    assert "  -worst at [#]: expected #, got #\n  +quite another failure" in result.cause


def test_numbers_are_masked_and_names_are_not():
    assert masked("at [3, -4]: 1.5e-05, +.5 nan float32 x1   y_2 a-1") == "at [#, #]: #, # nan float32 x1 y_2 a-#"
    messages = [Message("user", "got 1.0")]
    assert key(messages) == key([Message("user", "got  -3")])
    assert key(messages) != key([Message("system", "got 1.0")])
    assert key(messages) != key([Message("user", "gave 1.0")])


def test_the_first_recording_wins(tmp_path):
    for name, answer in [("a", "first"), ("b", "second")]:
        lines = [
            {"format": "enable-recording", "version": 1},
            {"conversation": 1, "role": "user", "content": "q 1"},
            {"conversation": 1, "role": "assistant", "content": answer},
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    model = load_provider("replay", Options(recordings=tmp_path))
    request = Request((Message("user", "q 2"),), 1.0, "generate", 1, tmp_path)
    assert model.complete(request) == Answer("first")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "enable-recording", "version": 2}', "version 2 is unknown; this program reads enable-recording 1"),
        ('{"format": "other", "version": 1}', "format 'other' version 1 is unknown"),
        ("not json", "line 1: not JSON"),
        ("[]", "line 1: not a record"),
        ('{"format": "enable-recording", "version": 1}\n{"role": "user"}', "line 2: a message without 'content'"),
    ],
)
def test_damaged_recordings_are_refused(tmp_path, text, message):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(UserError) as error:
        load_recordings(tmp_path)
    assert message in str(error.value)


def test_no_recordings_at_all(tmp_path):
    with pytest.raises(ProviderError, match="no recordings in .*; use --llm openai or --llm manual"):
        load_provider("replay", Options(recordings=tmp_path))
