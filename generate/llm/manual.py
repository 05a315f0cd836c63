"""Let a person or another program be the model: prompts and answers are exchanged as files."""

from __future__ import annotations

from pathlib import Path

from generate.llm import Answer, Options, ProviderError, Request, Waiting
from traces.errors import read_problem
from traces.format import write_durably


class ManualProvider:
    """Writes NNN-prompt.md into the run's directory, and reads NNN-answer.md as soon as it exists and is not empty."""

    name = "manual"

    def complete(self, request: Request) -> Answer:
        """Return the answer in the run's answer file.

        Raises:
            Waiting: If there is no answer yet.
            ProviderError: If the answer was written for another prompt, or is not UTF-8.
        """
        prompt = prompt_path(request.directory, request.number)
        answer = answer_path(request.directory, request.number)
        text = conversation(request)
        written = answer.is_file() and _text(answer).strip() != ""
        if written and prompt.is_file() and prompt.read_text(encoding="utf-8") != text:
            raise ProviderError(
                f"{answer} answers another prompt than {prompt.name} now holds; remove it and run again"
            )
        if not prompt.is_file() or prompt.read_text(encoding="utf-8") != text:
            write_durably(prompt, [text.encode()])
        if not written:
            raise Waiting(prompt, answer)
        return Answer(_text(answer))


def prompt_path(directory: Path, number: int) -> Path:
    """Return the path for a call's prompt."""
    return directory / f"{number:03d}-prompt.md"


def answer_path(directory: Path, number: int) -> Path:
    """Return the path for a call's answer."""
    return directory / f"{number:03d}-answer.md"


def _text(answer: Path) -> str:
    """Return an answer file's text, or raise ProviderError."""
    try:
        return answer.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProviderError(f"{answer}: cannot be read ({read_problem(error)}); write it anew") from error


def conversation(request: Request) -> str:
    """Return all messages as text, each with its role as a heading."""
    return "\n\n".join(f"<!-- {m.role} -->\n\n{m.content.rstrip()}" for m in request.messages) + "\n"


def provider(options: Options) -> ManualProvider:
    """Return the provider; it has no options."""
    return ManualProvider()
