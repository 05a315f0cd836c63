"""Decide if the default provider, which replays recordings, can answer about an operator, and suggest alternatives."""

from __future__ import annotations

from collections.abc import Collection

from enable.cover.needs import is_known
from generate.llm import Provider
from generate.llm.replay import SHIPPED, ReplayProvider
from generate.recording import overloads_in
from traces import UserError
from verify.contract.derive import functional_base


def words(overloads: Collection[str]) -> list[str]:
    """Return the options that make a refine command work for these overloads.

    Empty if shipped recordings cover all of them. Otherwise they select the provider that needs neither a key nor a
    network.
    """
    bases = {functional_base(o) if is_known(o) else o for o in overloads}
    return [] if bases <= overloads_in(SHIPPED) else ["--llm", "manual"]


def askable(provider: Provider, overloads: Collection[str], by_hand: str) -> Collection[str]:
    """Return the operators about which the provider may have an answer.

    `by_hand` is the command for answers that the user writes.

    Raises:
        UserError: The provider knows none of the operators.
    """
    if not isinstance(provider, ReplayProvider) or not overloads:
        return overloads
    answerable = provider.overloads.intersection(overloads)
    if not answerable:
        raise UserError(f"{unanswered(overloads)}, or write the answers yourself: {by_hand}")
    return answerable


def unanswered(overloads: Collection[str]) -> str:
    """Return a message that no provider answers about these overloads, with a remedy."""
    first, *further = overloads
    subject = f"{first} and {len(further)} more" if further else first
    return (
        f"no language model is configured, and no recorded dialog is about {subject}; "
        "set OPENAI_API_KEY and pass --llm openai --model NAME"
    )
