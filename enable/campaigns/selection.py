"""Choose the operators for a campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from enable.cover.needs import is_known, match_overloads, needs_kernel
from enable.naming import full
from enable.refine.refinement import Operator, Refinement
from generate.campaign import QUERY, Campaign
from traces import UserError
from traces.overloads import resolve

NO_CATEGORY = "-"


@dataclass(frozen=True)
class Chosen:
    """An operator and its category in the published OpInfo table.

    Attributes:
        operator: Operator.
        category: Category; `-` if the trace was not recorded from OpInfo.
    """

    operator: Operator
    category: str


def trace_of(campaign: Campaign) -> str:
    """Return the name of the trace with the campaign's cases."""
    match = QUERY.fullmatch(campaign.query)
    return match[2] if match else campaign.trace


def choose(refinement: Refinement, campaign: Campaign) -> list[Chosen]:
    """Return the operators for a campaign, the most called first; operators that the user named keep their order.

    Args:
        refinement: Refinement for the campaign's trace alone.
        campaign: Settings.

    Raises:
        UserError: If a name or a category is unknown.
    """
    categories = refinement.users.categories
    _check_categories(campaign, categories.values())
    chosen = dict.fromkeys(refinement.operator(o) for o in _overloads(refinement, campaign))
    selected = [Chosen(o, categories.get(o.overload, NO_CATEGORY)) for o in chosen]
    return [c for c in selected if not campaign.categories or c.category in campaign.categories][: campaign.most]


def _check_categories(campaign: Campaign, known: Iterable[str]) -> None:
    """Raise UserError if a category is not in the trace."""
    unknown = sorted(set(campaign.categories) - set(known))
    if unknown:
        choices = ", ".join(sorted(set(known))) or "none: it is not of OpInfo"
        raise UserError(f"categories: {unknown[0]!r} is none of those of {trace_of(campaign)}; it has {choices}")


def _overloads(refinement: Refinement, campaign: Campaign) -> Iterable[str]:
    """Return the overloads that the campaign's query or its operator list selects."""
    match, name = QUERY.fullmatch(campaign.query), trace_of(campaign)
    trace, session = refinement.trace(name), refinement.session
    calls: Counter[str] = Counter()
    for signature in trace.asked:
        if needs_kernel(signature.overload, signature.kind):
            calls[signature.overload] += signature.calls
    if match is None:
        return [o for word in campaign.operators for o in _named(refinement, name, word, calls)]
    matches = match_overloads(trace, session.library)
    if match[1] == "failing":
        wanted = {row.overload for row in session.coverage(name).failing()}
    else:
        wanted = {o for o, kernel_match in matches.items() if match[1] == "every" or kernel_match is None}
    return [o for o, _ in calls.most_common() if o in wanted and o in refinement.cases]


def _named(refinement: Refinement, trace: str, word: str, calls: Counter[str]) -> list[str]:
    """Return the overloads for a user's word: one overload, or those that an OpInfo operator calls.

    An OpInfo operator stands for its overloads without a kernel, or for all its overloads if each has a kernel.
    """
    if "::" in word:
        resolve(word)
        return [word]
    operators, library = refinement.users.operators, refinement.session.library
    if word not in operators and is_known(full(word)):
        return [full(word)]
    if word not in operators:
        name = f"opinfo-{word}"
        record = refinement.session.workspace.command("capture", "opinfo", "--op", word, "--name", name)
        raise UserError(
            f"{word!r} is neither an overload such as aten::exp nor an operator of OpInfo in the trace {trace}; "
            f"record it: {record}, and pass --trace {name}"
        )
    missing = [o for o in operators[word] if library.match(o) is None]
    return sorted(missing or operators[word], key=lambda o: (-calls[o], o))
