"""Limit the calls, tokens and money that all dialogs in a campaign may use together."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from generate.journal import NAME, read_journal, usage
from generate.llm import FREE, Answer, Message, Price, Provider, ProviderError, Request, estimate_tokens


class BudgetSpent(ProviderError):
    """The budget is spent; the text names the limit and how to raise it."""


class Budget:
    """Limits on calls, tokens and money, and the amounts used; None means no limit. Safe to use from several threads.

    No call begins once a limit is reached. The limit on calls is exact. Tokens and money are known only after
    an answer, so calls that are in progress when such a limit is reached may exceed it.
    """

    def __init__(self, calls: int | None = None, tokens: int | None = None, money: float | None = None) -> None:
        self._limits: dict[str, float | None] = {"calls": calls, "tokens": tokens, "money": money}
        self._used: dict[str, float] = {"calls": 0, "tokens": 0, "money": 0.0}
        self._lock = Lock()

    @property
    def calls(self) -> int:
        """Return the number of calls that were answered or are in progress."""
        return int(self._used["calls"])

    @property
    def tokens(self) -> int:
        """Return the tokens that were used."""
        return int(self._used["tokens"])

    @property
    def money(self) -> float:
        """Return the money that was spent."""
        return self._used["money"]

    def left(self) -> dict[str, float | None]:
        """Return the remaining amounts, as arguments for another Budget."""
        with self._lock:
            return {n: None if limit is None else max(0, limit - self._used[n]) for n, limit in self._limits.items()}

    def begin(self) -> None:
        """Take one call from the budget.

        Raises:
            BudgetSpent: If a limit is reached.
        """
        with self._lock:
            for name, limit in self._limits.items():
                if limit is not None and self._used[name] >= limit:
                    spent = f"budget of {limit:g} {name}" if name == "money" else f"budget of {limit} {name}"
                    raise BudgetSpent(f"{spent} is spent; raise it with budget.{name} and run the same command again")
            self._used["calls"] += 1

    def give_back(self) -> None:
        """Return a call that was not answered to the budget."""
        with self._lock:
            self._used["calls"] -= 1

    def charge(self, prompt_tokens: int, completion_tokens: int, price: Price = FREE, calls: int = 0) -> None:
        """Record the tokens for an answer.

        Args:
            prompt_tokens: Tokens in the request.
            completion_tokens: Tokens in the answer.
            price: Price per million tokens.
            calls: Number of calls to record as well, if they did not go through `begin`.
        """
        with self._lock:
            self._used["calls"] += calls
            self._used["tokens"] += prompt_tokens + completion_tokens
            self._used["money"] += price.of(prompt_tokens, completion_tokens)


class Budgeted:
    """A provider that charges each call to a budget; several providers may share it."""

    def __init__(self, provider: Provider, budget: Budget, price: Price = FREE) -> None:
        self.name = provider.name
        self._provider, self._budget, self._price = provider, budget, price

    def complete(self, request: Request) -> Answer:
        """Return the provider's answer; a call without an answer is not charged.

        Raises:
            BudgetSpent: If a limit is reached. The provider's exceptions pass through.
        """
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
    """Charge the calls in all journals under `dialogs`, so that the budget also counts earlier runs.

    Args:
        budget: Budget to charge.
        dialogs: Directory with the journals.
        price: Price for the generator's calls.
        summarizer: Price for the summarizer's calls; None for the same price.

    Raises:
        UserError: If a journal is damaged.
    """
    prices = {"generate": price, "summarize": price if summarizer is None else summarizer}
    for path in sorted(dialogs.glob(f"*/run-*/{NAME}")):
        for purpose, prompt, completion in usage(read_journal(path, torn=True)):
            budget.charge(prompt, completion, prices[purpose], calls=1)


def counted(messages: tuple[Message, ...], answer: Answer) -> tuple[int, int]:
    """Return the tokens in prompt and answer, estimated if the provider reports none."""
    if answer.prompt_tokens + answer.completion_tokens:
        return answer.prompt_tokens, answer.completion_tokens
    return estimate_tokens(messages), estimate_tokens([Message("assistant", answer.text + answer.reasoning)])
