"""Budgets of calls, tokens and money, shared by dialogs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from generate.llm import FREE, Answer, Message, Options, Price, ProviderError, Request, load_provider
from generate.llm.budget import Budget, Budgeted, BudgetSpent

REQUEST = Request((Message("user", "x" * 300),), 1.0, "generate", 1, Path("unused"))


def openai(price=FREE, **limits):
    budget = Budget(**limits)
    model = load_provider("openai", Options(model="m", retries=0))
    return budget, Budgeted(model, budget, price)


def test_calls_tokens_and_money_are_counted(endpoint):
    budget, model = openai(Price(prompt=2.0, completion=10.0))
    endpoint.replies = ["hello", "hello"]
    assert model.name == "openai m"
    assert model.complete(REQUEST) == Answer("hello", 1000, 200)
    model.complete(REQUEST)
    assert (budget.calls, budget.tokens) == (2, 2400)
    assert budget.money == pytest.approx(2 * (1000 * 2.0 + 200 * 10.0) / 1e6)


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"calls": 2}, "budget of 2 calls is spent; raise it with budget.calls and run the same command again"),
        ({"tokens": 1201}, "budget of 1201 tokens is spent; raise it with budget.tokens and"),
        ({"money": 0.0013}, "budget of 0.0013 money is spent; raise it with budget.money and"),
    ],
)
def test_a_spent_budget_says_which_limit(endpoint, limits, told):
    _, model = openai(Price(1.0, 0.0), **limits)
    endpoint.replies = ["hello"] * 3
    model.complete(REQUEST)
    model.complete(REQUEST)
    with pytest.raises(BudgetSpent, match=f"^{told}"):
        model.complete(REQUEST)
    assert len(endpoint.replies) == 1, "the endpoint is not asked"


def test_a_call_without_an_answer_is_free(endpoint):
    budget, model = openai(calls=1)
    endpoint.replies = [500, (400, {"message": "maximum context length"}), "hello"]
    for _ in range(2):
        with pytest.raises(Exception):  # noqa: B017 - of the provider, of two kinds
            model.complete(REQUEST)
    assert model.complete(REQUEST).text == "hello"
    assert budget.calls == 1


def test_tokens_are_estimated_where_the_endpoint_counts_none(endpoint):
    budget, model = openai()
    endpoint.replies = [endpoint.streamed("y" * 300, usage=False)]
    model.complete(REQUEST)
    assert 150 < budget.tokens < 300


def test_many_threads_never_exceed_the_calls(endpoint):
    budget, model = openai(calls=10)
    endpoint.replies = ["hello"] * 30

    def one(_):
        try:
            return model.complete(REQUEST).text
        except ProviderError:
            return None

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(30)))
    assert answers.count("hello") == budget.calls == 10
    assert len(endpoint.requests) == 10


def test_what_earlier_processes_used_counts():
    budget = Budget(calls=5, tokens=10_000)
    budget.charge(4_000, 1_000, Price(1.0, 1.0), calls=5)
    assert (budget.calls, budget.tokens, budget.money) == (5, 5_000, 0.005)
    with pytest.raises(BudgetSpent):
        budget.begin()
