"""What all dialogs of a campaign together may use: calls, tokens, money."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from generate.journal import NAME, read_journal, usage
from generate.llm import FREE, Answer, Message, Price, Provider, ProviderError, Request, estimate_tokens


class BudgetSpent(ProviderError):
    """The budget is spent: which limit, and how to raise it."""


class Budget:
    """Limits of calls, tokens and money, and what is used of them; None is no limit. Safe to use from several threads.

    No call begins once a limit is reached. Calls are exact; of tokens and money, which only an answer tells, the calls
    under way when a limit is reached may use more.
    """

    def __init__(self, calls: int | None = None, tokens: int | None = None, money: float | None = None) -> None:
        self._limits: dict[str, float | None] = {"calls": calls, "tokens": tokens, "money": money}
        self._used: dict[str, float] = {"calls": 0, "tokens": 0, "money": 0.0}
        self._lock = Lock()

    @property
    def calls(self) -> int:
        """Calls that were answered or are under way."""
        return int(self._used["calls"])

    @property
    def tokens(self) -> int:
        return int(self._used["tokens"])

    @property
    def money(self) -> float:
        return self._used["money"]

    def left(self) -> dict[str, float | None]:
        """The limits of another budget that may use what this one still has."""
        with self._lock:
            return {n: None if limit is None else max(0, limit - self._used[n]) for n, limit in self._limits.items()}

    def begin(self) -> None:
        """Take one call. Raises BudgetSpent where nothing is left."""
        with self._lock:
            for name, limit in self._limits.items():
                if limit is not None and self._used[name] >= limit:
                    what = f"budget of {limit:g} {name}" if name == "money" else f"budget of {limit} {name}"
                    raise BudgetSpent(f"{what} is spent; raise it with budget.{name} and run the same command again")
            self._used["calls"] += 1

    def give_back(self) -> None:
        """Return a call that was not answered."""
        with self._lock:
            self._used["calls"] -= 1

    def charge(self, prompt_tokens: int, completion_tokens: int, price: Price = FREE, calls: int = 0) -> None:
        """Note the tokens of an answer; calls: what was answered besides by calls that did not `begin` here."""
        with self._lock:
            self._used["calls"] += calls
            self._used["tokens"] += prompt_tokens + completion_tokens
            self._used["money"] += price.of(prompt_tokens, completion_tokens)


class Budgeted:
    """A provider that takes each call out of a budget, which others may share."""

    def __init__(self, provider: Provider, budget: Budget, price: Price = FREE) -> None:
        self.name = provider.name
        self._provider, self._budget, self._price = provider, budget, price

    def complete(self, request: Request) -> Answer:
        """Raises BudgetSpent, and what the provider raises; a call without an answer is free."""
        self._budget.begin()
        answer = None
        try:
            answer = self._provider.complete(request)
        finally:
            if answer is None:
                self._budget.give_back()
        prompt, completion = counted(request.messages, answer)
        self._budget.charge(prompt, completion, self._price)
        return answer


def charge_runs(budget: Budget, dialogs: Path, price: Price = FREE, summarizer: Price | None = None) -> None:
    """Charge what the runs under `dialogs` have used, so that a budget holds over resumptions.

    price: of the generator; summarizer: None is the same. Raises UserError if a journal is damaged.
    """
    prices = {"generate": price, "summarize": price if summarizer is None else summarizer}
    for path in sorted(dialogs.glob(f"*/run-*/{NAME}")):
        for purpose, prompt, completion in usage(read_journal(path, torn=True)):
            budget.charge(prompt, completion, prices[purpose], calls=1)


def counted(messages: tuple[Message, ...], answer: Answer) -> tuple[int, int]:
    """Tokens of prompt and answer, estimated where the provider counts none."""
    if answer.prompt_tokens + answer.completion_tokens:
        return answer.prompt_tokens, answer.completion_tokens
    return estimate_tokens(messages), estimate_tokens([Message("assistant", answer.text + answer.reasoning)])
