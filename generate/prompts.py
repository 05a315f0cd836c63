"""Fill the prompt templates in templates/.

A prompt depends on the task alone; it contains no path, time, address or version of the machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from generate import BLOCKS
from generate.chip import chip_fields
from generate.llm import Message
from generate.machine import Flaw, State
from generate.task import Task
from verify.linking import blocks_in
from verify.lint import Profile, lint, load_profile
from verify.outcome import LINT, UNREACHED, Outcome
from verify.platforms import Platform

HERE = Path(__file__).parent
OFFERED = ("elementwise", "reduction", "types", "offsets")  # block modules that the prompt lists
EXAMPLES = ("exp", "argmax", "diag")

# Outcome -> (description of the failure, advice).
_OUTCOMES: dict[str, tuple[str, str]] = {
    LINT: (
        "The file breaks rules of the dialect. Each line names the rule, the place and what to write instead:",
        "Mend all of them.",
    ),
    Outcome.WRONG: (
        "The kernel runs, but its result is wrong.",
        "Find the cause before you change anything: look at where and how the values differ.",
    ),
    UNREACHED: (
        "Every case passes, but parts of the file never ran, so that nobody knows whether they are right.",
        "Leave out what no call needs, or let the lines that ran serve these calls, too.",
    ),
    Outcome.COMPILE_ERROR: ("The kernel does not compile.", "Mend what the compiler names."),
    Outcome.RUNTIME_ERROR: ("The call ended with a Python error.", "Mend what raised it."),
    Outcome.CRASH: (
        "The kernel crashed the process.",
        "Check every pointer, offset and mask: an access outside a tensor is the usual cause.",
    ),
    Outcome.TIMEOUT: (
        "The kernel did not end in time.",
        "Look for a loop that never ends, or for a grid with far too many programs.",
    ),
    Outcome.SKIPPED: ("A case was not run.", "Serve what the reason names."),
    Outcome.CHEAT: (
        "The file does its work by means that are not allowed.",
        "Compute the result in @triton.jit kernels; the wrapper only allocates, makes views and launches.",
    ),
}


def opening(task: Task, state: State) -> tuple[Message, ...]:
    """Return a dialog's first messages: the rules, then the operator with the latest kernel and its failure."""
    started = state.source is not None
    source = state.source if started else task.source
    outcome, report = "", ""
    if started:
        outcome, report = state.outcome, state.report
    elif task.failing is not None and task.failing.outcome in _OUTCOMES:
        outcome, report = str(task.failing.outcome), task.failing.report or task.failing.detail
    fields = {
        "task": task,
        "source": source,
        "counts": count_text(state.counts),
        "outcome_text": _OUTCOMES[outcome][0] if outcome else "",
        "report": cut_middle(report, state.limits.report),
        "draws": task.draws,
        "sized_by_data": task.sized_by_data,
        "annotations": load_profile(task.profile).kernel.annotations,
    }
    text = _render("operator.md.j2", **fields) + (f"\n{task.search}" if task.search else "")
    rules = system(task.profile, _without(task.overload))
    return Message("system", f"{rules}\n{task.chip}" if task.chip else rules), Message("user", text)


@cache
def system(profile: str, examples: tuple[str, ...] = EXAMPLES) -> str:
    """Return the system prompt: the rules and examples for a dialect.

    It is the same for all operators, except that an example operator does not see its own example.
    """
    dialect = load_profile(profile)
    allowed = [text for text in _examples(examples) if not lint(text, dialect.with_blocks(BLOCKS))]
    return _render("system.md.j2", examples=allowed, **_dialect(dialect))


def chip(platform: Platform) -> str:
    """Return the section on a user's chip: its targets and limits, and what to write instead of what it lacks."""
    fields = chip_fields(platform, OFFERED)
    return _render("chip.md.j2", **fields) if fields else ""


def _without(overload: str) -> tuple[str, ...]:
    """Return the examples, without the one that would give the answer away."""
    base = overload.removeprefix("aten::").split(".")[0].rstrip("_")
    return tuple(name for name in EXAMPLES if name != base)


def searching(**fields: Any) -> str:
    """Return the text that a search for faster kernels adds to the first message.

    The fields come from generate/kernel_search/search.py.
    """
    return _render("tuning.md.j2", **fields).rstrip() + "\n"


def feedback(state: State, report: str) -> str:
    """Return the next user message on the latest answer's failure; `report` is cut to the limit."""
    description, advice = _OUTCOMES[state.outcome]
    shown = cut_middle(report, state.limits.report)
    counts = "" if state.outcome in (UNREACHED, LINT) else count_text(state.counts)
    return _render("feedback.md.j2", outcome_text=description, counts=counts, report=shown, advice=advice)


def flawed(state: State) -> str:
    """Return the next user message after an answer without a new kernel file."""
    before = feedback(state, state.report) if state.flaw == Flaw.REPEATED else ""
    return _render("flawed.md.j2", flaw=str(state.flaw), size=state.size, refusal=state.refusal, before=before)


def summary_request(report: str, limit: int) -> tuple[Message, ...]:
    """Return the messages for the summarizing model; a report over `limit` characters is cut in its middle."""
    return (Message("user", _render("summarize.md.j2", report=cut_middle(report, limit))),)


def cut_middle(text: str, limit: int) -> str:
    """Return the head and tail of a text, `limit` characters together, with a line on the omitted part between them."""
    text = text.strip()
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 2], text[-(limit // 2) :]
    return f"{head}\n[... {len(text) - len(head) - len(tail)} characters left out ...]\n{tail}"


def count_text(counts: dict[str, int]) -> str:
    """Return counts as text, such as '12 PASS, 3 WRONG'."""
    return ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))


def _examples(names: Iterable[str]) -> list[str]:
    """Return the example files' sources."""
    return [(HERE / "examples" / f"{name}.py").read_text(encoding="utf-8") for name in names]


def _dialect(profile: Profile) -> dict[str, Any]:
    """Return the template fields for a dialect's allow-lists."""
    host, kernel = profile.host, profile.kernel
    tensor = {n for n, kinds in host.attributes.items() if kinds & {"tensor", "tensors", "value"}}
    tensor -= profile.hints.keys()  # allowed, such as item, but rarely the right choice
    # a wrapper may name a type that kernels for a chip may not compute in
    values = [n for n in host.values if n not in profile.hints and (n[:3] != "tl." or n in kernel.names)]
    return {
        "imports": [
            f"import {module}" if alias == module else f"import {module} as {alias}"
            for alias, module in profile.usual_imports.items()
        ],
        "host_functions": host.functions,
        "host_values": values,
        "tensor_attributes": tensor,
        "host_builtins": host.builtins,
        "kernel_names": [name for name in kernel.names if name.startswith("tl.")],
        "kernel_attributes": kernel.attributes,
        "kernel_builtins": kernel.builtins,
        "blocks": _blocks(profile),
    }


def _blocks(profile: Profile) -> dict[str, list[str]]:
    """Return by module a line for each offered block: its call and its summary."""
    known, lines = blocks_in((*profile.blocks, BLOCKS)), {}
    for module in OFFERED:
        public = known.module(module).values()
        lines[module] = [f"`{b.name}({b.signature})`: {b.summary}" for b in public if b.summary]
    return {module: module_lines for module, module_lines in lines.items() if module_lines}


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


@cache
def _environment() -> Environment:
    environment = Environment(  # noqa: S701 - the texts are Markdown for a model, not HTML
        loader=FileSystemLoader(HERE / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["names"] = _names
    return environment


def _render(template: str, **fields: Any) -> str:
    return _environment().get_template(template).render(**fields)
