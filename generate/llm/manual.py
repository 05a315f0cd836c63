"""A person, or another program, as the model: the prompt is left in a file and the answer is taken from a file."""

from __future__ import annotations

from pathlib import Path

from generate.llm import Answer, Options, ProviderError, Request, Waiting
from traces.format import write_durably


class ManualProvider:
    """Writes NNN-prompt.md into the run's directory; takes NNN-answer.md once it is there and not empty."""

    name = "manual"

    def complete(self, request: Request) -> Answer:
        """Raises Waiting until the answer exists, ProviderError if it was written for another prompt."""
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
    """Where a run's call leaves its prompt."""
    return directory / f"{number:03d}-prompt.md"


def answer_path(directory: Path, number: int) -> Path:
    """Where its answer is taken from."""
    return directory / f"{number:03d}-answer.md"


def _text(answer: Path) -> str:
    try:
        return answer.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProviderError(f"{answer}: not a text in UTF-8 ({error}); write it anew") from error


def conversation(request: Request) -> str:
    """All messages so far, each under a heading with its role."""
    return "\n\n".join(f"<!-- {m.role} -->\n\n{m.content.rstrip()}" for m in request.messages) + "\n"


def provider(options: Options) -> ManualProvider:
    return ManualProvider()
