"""Read a workspace's dialog journals: list runs, find the run that waits for an answer, and print conversations.

Used by the commands `enable dialog list`, `show` and `answer`.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from enable.tables import table
from enable.terminal import LAYOUT, printable
from enable.workspace import Workspace
from generate.journal import NAME, Record, event_of, read_journal, runs_of, slug
from generate.llm import Message
from generate.llm.manual import answer_path, prompt_path
from generate.machine import FINAL, DialogLimits, Event, EventKind, Stage, State, step
from generate.prompts import count_text
from traces import UserError
from traces.errors import did_you_mean
from traces.format import write_durably
from traces.program import program_name

DAMAGED = "DAMAGED"  # the stage of a run whose journal cannot be read
NOBODY, RUNNING, YOURS, STOPPED = "-", "running", "yours", "stopped"  # values of the column "turn"


@dataclass
class ModelCall:
    """One call to a model.

    Attributes:
        number: Number within the run.
        dialog: Dialog number.
        purpose: "generate", or "summarize".
        model: Model name.
        messages: All messages in the request.
        seen: Count of leading messages that earlier calls have already shown.
        answer: Text of the answer; None if it is outstanding.
        reasoning: Reasoning text in the answer.
        prompt_tokens: Tokens in the request.
        completion_tokens: Tokens in the answer.
        then: Consequences of the answer, one line for each event.
    """

    number: int
    dialog: int
    purpose: str
    model: str
    messages: tuple[Message, ...]
    seen: int
    answer: str | None = None
    reasoning: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    then: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class DialogRun:
    """One run of an operator's dialogs.

    Attributes:
        workspace: Workspace with the run.
        overload: The run's operator.
        campaign: Campaign name; empty if the run belongs to none.
        directory: The journal's directory.
        latest: True for the run that a command would resume.
        records: Records in the journal.
        problem: Reason why the journal cannot be read; empty if it can.
    """

    workspace: Workspace
    overload: str
    campaign: str
    directory: Path
    latest: bool
    records: tuple[Record, ...] = ()
    problem: str = ""

    @property
    def state(self) -> State:
        """Return the state machine's state after all records in the journal."""
        state = before = State(DialogLimits(**self.records[0]["limits"]))
        for record in self.records:
            before, state = _after(record, before, state)
        return state

    @property
    def pending(self) -> int | None:
        """Return the number of the call that waits for an answer in a file, or None."""
        last = self.records[-1] if self.records else {}
        number = last.get("number")
        waits = "request" in last and self.latest and prompt_path(self.directory, last["number"]).is_file()
        return number if waits and not answer_path(self.directory, last["number"]).is_file() else None

    def turn(self, state: State) -> str:
        """Return who has to act next: NOBODY, RUNNING, YOURS or STOPPED."""
        if not self.latest or state.stage in FINAL - {Stage.ABORTED}:
            return NOBODY
        if _is_locked(self.directory / NAME):
            return RUNNING
        return STOPPED if self.pending is None else YOURS

    def as_json(self) -> dict[str, Any]:
        """Return a row for `enable dialog list --json`."""
        row = {"overload": self.overload, "campaign": self.campaign or None, "run": self.directory.name}
        if self.problem:
            counts = dict.fromkeys(("dialog", "calls", "tokens"), 0)
            return {**row, "stage": DAMAGED, **counts, "turn": NOBODY, "detail": self.problem}
        s = self.state
        counts = {"dialog": min(s.dialog, s.limits.dialogs), "calls": s.llm_calls, "tokens": s.tokens}
        turn = self.turn(s)
        return {**row, "stage": str(s.stage), **counts, "turn": turn, "detail": self._detail(turn, s)}

    def _detail(self, turn: str, state: State) -> str:
        """Return the next step for the user; '' if there is nothing to do."""
        if turn == YOURS:
            return f"read {prompt_path(self.directory, self.pending or 0)}, then: {self.typed('answer')} FILE"
        if turn == STOPPED:
            return f"{state.cause}; to go on: {self.again}".removeprefix("; ")
        return ""

    @property
    def again(self) -> str:
        """Return the command that resumes the run."""
        commands = [record["command"] for record in self.records if record.get("command")]
        return commands[-1] if commands else "run the same command again"

    def typed(self, name: str) -> str:
        """Return the command `enable dialog NAME` for this run."""
        campaign = ["--campaign", self.campaign] if self.campaign else []
        return self.workspace.command("dialog", name, *campaign, self.overload)


def _read_torn(journal: Path) -> list[Record]:
    """Return a journal's records; skip an incomplete last line."""
    return read_journal(journal, torn=True)


def runs(
    workspace: Workspace,
    overload: str | None = None,
    campaign: str | None = None,
    read: Callable[[Path], list[Record]] = _read_torn,
) -> list[DialogRun]:
    """Return all dialog runs in the workspace and its campaigns, sorted by name.

    Args:
        workspace: Workspace to search.
        overload: Only runs for this operator, unless None.
        campaign: Only runs for this campaign, unless None; '' means runs outside campaigns.
        read: Returns a journal's records, for example from a cache.

    Raises:
        UserError: If `overload` is not an overload name, or if there is no such campaign.
    """
    homes = {"": workspace.dialogs}
    homes |= {p.parent.name: p for p in sorted((workspace.root / "campaigns").glob("*/dialogs"))}
    if campaign is not None and campaign not in homes:
        known = ", ".join(filter(None, homes)) or "none"
        suggestion = did_you_mean(campaign, homes)
        raise UserError(
            f"no campaign {campaign!r} in {workspace.root}{suggestion} (campaigns: {known}); {_all_of(workspace)}"
        )
    chosen = homes if campaign is None else {campaign: homes[campaign]}
    pattern = slug(overload) if overload else "*"
    return [
        run
        for name, home in chosen.items()
        for where in sorted(home.glob(pattern))
        for run in _runs_in(workspace, where, name, read)
    ]


def _runs_in(
    workspace: Workspace, where: Path, campaign: str, read: Callable[[Path], list[Record]]
) -> Iterator[DialogRun]:
    """Yield the runs in one operator's directory, ordered by number."""
    directories = [run for run in runs_of(where) if (run / NAME).is_file()]
    for directory in directories:
        latest = directory == directories[-1]
        try:
            records = read(directory / NAME)
        except UserError as error:
            yield DialogRun(
                workspace, where.name.replace(".", "::", 1), campaign, directory, latest, problem=str(error)
            )
            continue
        if records:  # a run that was killed at its start has no records
            yield DialogRun(workspace, records[0]["overload"], campaign, directory, latest, tuple(records))


def list_lines(rows: list[dict[str, Any]]) -> str:
    """Return the table for `enable dialog list`, with the next step for each run that has not ended."""
    if not rows:
        return f"no dialogs yet; to hold some, see: {program_name()} refine --help"
    columns = ("overload", "campaign", "run", "stage", "dialog", "calls", "tokens", "turn")
    shown = columns if any(row["campaign"] for row in rows) else [c for c in columns if c != "campaign"]
    details = [f"{row['overload']}: {row['detail']}" for row in rows if row["detail"]]
    listed = table([{c: row[c] for c in shown} for row in rows], ("tokens", "calls", "dialog"))
    return "\n".join([listed, *(printable(d, LAYOUT) for d in details)])


def one(workspace: Workspace, overload: str, campaign: str | None, number: int | None = None) -> DialogRun:
    """Return one run for an operator: the run with this number, or the one that was written last.

    Raises:
        UserError: If there is no such run, or if its journal cannot be read.
    """
    matching = runs(workspace, overload, campaign)
    if not matching:
        known = sorted({run.overload for run in runs(workspace)})
        have = f"dialogs here: {', '.join(known)}" if known else f"{workspace.dialogs} holds none yet"
        raise UserError(f"no dialog about {overload} ({have}); {_all_of(workspace)}")
    if number is not None:
        names = [run.directory.name for run in matching]
        matching = [run for run in matching if run.directory.name == f"run-{number:03d}"]
        if not matching:
            raise UserError(f"no run {number} of {overload} (runs: {', '.join(names)}); {_all_of(workspace)}")
    run = max(matching, key=lambda r: (r.directory / NAME).stat().st_mtime_ns)
    if run.problem:
        raise UserError(run.problem)
    return run


def _all_of(workspace: Workspace) -> str:
    return f"see: {workspace.command('dialog', 'list')}"


def answer(workspace: Workspace, overload: str, campaign: str | None, text: str) -> tuple[Path, str]:
    """Store an answer in the file that the waiting run reads.

    Returns:
        The file, and the command that resumes the run.

    Raises:
        UserError: If no run or more than one run waits, or if the text is empty.
    """
    matching = runs(workspace, overload, campaign)
    waiting = [run for run in matching if run.pending is not None and run.turn(run.state) == YOURS]
    if not waiting:
        elsewhere = sorted({run.overload for run in runs(workspace) if run.pending is not None})
        have = f"waiting: {', '.join(elsewhere)}" if elsewhere else "nothing waits"
        raise UserError(f"no run of {overload} waits for an answer ({have}); {_all_of(workspace)}")
    if len(waiting) > 1:
        choices = " or ".join(repr(run.campaign) for run in waiting)
        raise UserError(f"{len(waiting)} runs of {overload} wait for an answer; name one with --campaign {choices}")
    if not text.strip():
        raise UserError(f"the answer about {overload} is empty; write one to a file, or to stdin with -")
    path = answer_path(waiting[0].directory, waiting[0].pending or 0)
    write_durably(path, [text.encode("utf-8", "replace")])
    return path, waiting[0].again


def calls(run: DialogRun) -> list[ModelCall]:
    """Return all model calls in a run, in order."""
    model_calls: list[ModelCall] = []
    seen = 0
    state = before = State(DialogLimits(**run.records[0]["limits"]))
    for record in run.records:
        if "request" in record:
            if model_calls and model_calls[-1].number == record["number"]:  # repeated after an interruption
                model_calls.pop()
            model_calls.append(_asked(record, state, seen))
        elif "event" in record:
            event = event_of(record)
            if model_calls:
                _note(model_calls[-1], event)
            if event.kind is EventKind.ANSWERED:
                seen = len(state.messages) + 1
            elif event.kind is EventKind.PROMPTED:
                seen = 0
        before, state = _after(record, before, state)
    return model_calls


def _after(record: Record, before: State, state: State) -> tuple[State, State]:
    """Return the states before and after a record; a resumption undoes the preceding failure."""
    if "resumed" in record:
        return before, before
    return (state, step(state, event_of(record))) if "event" in record else (before, state)


def _asked(record: Record, state: State, seen: int) -> ModelCall:
    """Return the model call that a request record describes."""
    summary = record["purpose"] != "generate"
    messages = tuple(Message(**m) for m in record["messages"]) if summary else state.messages
    model = record.get("model", "")
    return ModelCall(record["number"], state.dialog, record["purpose"], model, messages, 0 if summary else seen)


def _note(call: ModelCall, event: Event) -> None:
    """Add an event to the call that caused it: the answer with its token counts, or a line in `then`."""
    if event.kind in (EventKind.ANSWERED, EventKind.SUMMARIZED):
        call.answer = event.text if event.kind is EventKind.ANSWERED else event.report
        call.reasoning = event.reasoning
        call.prompt_tokens, call.completion_tokens = event.prompt_tokens, event.completion_tokens
    elif event.kind not in (EventKind.PROMPTED, EventKind.ADVISED):
        about = event.counts and count_text(event.counts)
        about = about or event.outcome or (event.text if event.kind is EventKind.FAILED else "")
        call.then.append(f"{event.kind}: {about}" if about else str(event.kind))


def chosen_call(run: DialogRun, number: int) -> ModelCall:
    """Return the call with this number.

    Raises:
        UserError: If there is no such call; the message lists the numbers.
    """
    calls_by_number = {call.number: call for call in calls(run)}
    if number not in calls_by_number:
        have = f"calls 1 to {max(calls_by_number)}" if calls_by_number else "no calls yet"
        raise UserError(f"{run.overload} has {have}, not {number}; see all: {run.typed('show')}")
    return calls_by_number[number]


def shown_json(run: DialogRun, number: int | None) -> dict[str, Any]:
    """Return the object that `enable dialog show --json` prints.

    Without a number it contains every call with the messages that are new in it. With a number it contains that
    call with all its messages.
    """
    chosen = [(chosen_call(run, number), 0)] if number is not None else [(call, call.seen) for call in calls(run)]
    rows = []
    for call, seen in chosen:
        row = asdict(call)
        del row["seen"]
        rows.append({**row, "messages": row["messages"][seen:]})
    return {**run.as_json(), "directory": str(run.directory), "calls": rows}


def shown_text(run: DialogRun, number: int | None) -> str:
    """Return the conversation as text for a terminal; with a number, all messages in that call."""
    if number is not None:
        return printable("\n".join(_call_lines(chosen_call(run, number), run, whole=True)), LAYOUT)
    row = run.as_json()
    head = f"{run.overload}, {row['run']}: {row['stage']} after {row['calls']} LLM calls, {row['tokens']} tokens"
    lines = [line for call in calls(run) for line in _call_lines(call, run, whole=False)]
    return printable("\n".join([head, *lines, *filter(None, [row["detail"]])]), LAYOUT)


def _call_lines(call: ModelCall, run: DialogRun, whole: bool) -> Iterator[str]:
    """Yield the lines for one call; with `whole`, all its messages and the reasoning."""
    counts = f", {call.prompt_tokens} + {call.completion_tokens} tokens" if call.prompt_tokens else ""
    by = f", {call.model}" if call.model else ""
    yield f"\n==== call {call.number}, dialog {call.dialog}, {call.purpose}{by}{counts}"
    for message in call.messages[0 if whole else call.seen :]:
        if message.role == "system" and not whole:
            yield f"\n---- system: {len(message.content)} characters; see: {run.typed('show')} --call {call.number}"
        else:
            yield f"\n---- {message.role}\n\n{message.content.strip()}"
    if call.reasoning and whole:
        yield f"\n---- reasoning\n\n{call.reasoning.strip()}"
    if call.answer is not None:
        yield f"\n---- assistant\n\n{call.answer.strip() or '(empty)'}"
    if call.then:
        yield ""
    yield from (f"---- {line}" for line in call.then)


def _is_locked(path: Path) -> bool:
    """Return True if a process has locked this journal.

    This takes a shared lock for a moment. `Journal` allows for that.
    """
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
