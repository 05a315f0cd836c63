"""Which operators a campaign works on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from enable.cover.coverage import is_known, match_overloads, needs_kernel
from enable.naming import full
from enable.refine.refinement import Operator, Refinement
from generate.campaign import QUERY, Campaign
from traces import UserError
from traces.overloads import resolve

NO_CATEGORY = "-"


@dataclass(frozen=True)
class Chosen:
    """An operator and its category in the published table, `-` where the trace is not OpInfo's."""

    operator: Operator
    category: str


def trace_of(campaign: Campaign) -> str:
    """The trace whose cases are used."""
    match = QUERY.fullmatch(campaign.query)
    return match[2] if match else campaign.trace


def choose(refinement: Refinement, campaign: Campaign) -> list[Chosen]:
    """The operators, the most called first, named ones in the user's order.

    refinement: of the campaign's trace alone. Raises UserError where a name or a category is unknown.
    """
    categories = refinement.users.categories
    _check_categories(campaign, categories.values())
    chosen = dict.fromkeys(refinement.operator(o) for o in _overloads(refinement, campaign))
    found = [Chosen(o, categories.get(o.overload, NO_CATEGORY)) for o in chosen]
    return [c for c in found if not campaign.categories or c.category in campaign.categories][: campaign.most]


def _check_categories(campaign: Campaign, known: Iterable[str]) -> None:
    unknown = sorted(set(campaign.categories) - set(known))
    if unknown:
        choices = ", ".join(sorted(set(known))) or "none: it is not of OpInfo"
        raise UserError(f"categories: {unknown[0]!r} is none of those of {trace_of(campaign)}; it has {choices}")


def _overloads(refinement: Refinement, campaign: Campaign) -> Iterable[str]:
    match, name = QUERY.fullmatch(campaign.query), trace_of(campaign)
    trace, session = refinement.trace(name), refinement.session
    calls: Counter[str] = Counter()
    for signature in trace.asked:
        if needs_kernel(signature.overload, signature.kind):
            calls[signature.overload] += signature.calls
    if match is None:
        return [o for given in campaign.operators for o in _named(refinement, name, given, calls)]
    matches = match_overloads(trace, session.library)
    if match[1] == "failing":
        wanted = {row.overload for row in session.coverage(name).failing()}
    else:
        wanted = {o for o, found in matches.items() if match[1] == "every" or found is None}
    return [o for o, _ in calls.most_common() if o in wanted and o in refinement.cases]


def _named(refinement: Refinement, trace: str, given: str, calls: Counter[str]) -> list[str]:
    """The overloads that a word of the user means: one, or those an operator of OpInfo calls and has no kernel for."""
    if "::" in given:
        resolve(given)
        return [given]
    operators, library = refinement.users.operators, refinement.session.library
    if given not in operators and is_known(full(given)):
        return [full(given)]
    if given not in operators:
        name = f"opinfo-{given}"
        record = refinement.session.workspace.command("capture", "opinfo", "--op", given, "--name", name)
        raise UserError(
            f"{given!r} is neither an overload such as aten::exp nor an operator of OpInfo in the trace {trace}; "
            f"record it: {record}, and pass --trace {name}"
        )
    lacking = [o for o in operators[given] if library.match(o) is None]
    return sorted(lacking or operators[given], key=lambda o: (-calls[o], o))
