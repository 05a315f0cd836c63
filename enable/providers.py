"""What the default provider, which answers from recordings alone, can be asked; and what to type where it cannot."""

from __future__ import annotations

from collections.abc import Collection

from enable.cover.coverage import is_known
from generate.llm import Provider
from generate.llm.replay import SHIPPED, ReplayProvider
from generate.recording import overloads_in
from traces import UserError
from verify.contract.derive import functional_base


def words(overloads: Collection[str]) -> list[str]:
    """What to add to a command that refines these, so that it works as it is typed: the provider that needs neither a
    key nor a network, unless the recordings that are shipped are of all of them."""
    bases = {functional_base(o) if is_known(o) else o for o in overloads}
    return [] if bases <= overloads_in(SHIPPED) else ["--llm", "manual"]


def askable(provider: Provider, overloads: Collection[str], by_hand: str) -> Collection[str]:
    """Those of the operators that the provider may know an answer about.

    by_hand: the command that asks for the same with answers of the user's own. Raises UserError if there is none.
    """
    if not isinstance(provider, ReplayProvider) or not overloads:
        return overloads
    found = provider.overloads.intersection(overloads)
    if not found:
        raise UserError(f"{unanswered(overloads)}, or write the answers yourself: {by_hand}")
    return found


def unanswered(overloads: Collection[str]) -> str:
    """That nobody answers about these, and how to have answers."""
    first, *others = overloads
    what = f"{first} and {len(others)} more" if others else first
    return (
        f"no language model is configured, and no recorded dialog is about {what}; "
        "set OPENAI_API_KEY and pass --llm openai --model NAME"
    )
