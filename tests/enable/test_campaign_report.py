"""What a campaign's report makes of its journals."""

import pandas as pd
import pytest

from enable.campaigns.report import CampaignResults, mended
from generate.machine import Flaw
from verify.outcome import UNREACHED, Outcome


def told(outcomes):
    answers = pd.DataFrame({"overload": "aten::exp", "number": range(1, len(outcomes) + 1), "outcome": outcomes})
    return CampaignResults("one", {}, pd.DataFrame(), answers, 1)


@pytest.mark.parametrize("outcome", [*map(str, Flaw), "LINT", UNREACHED, *(o for o in Outcome if o != Outcome.PASS)])
def test_every_kind_of_refusal_has_its_place(outcome):
    """The next answer passes, the one after is refused as the first was: one of two came further."""
    found = mended(told([outcome, "PASS", outcome, outcome]))
    assert found == {outcome: {"answers": 3, "answered_again": 2, "got_further": 1}}


def test_a_file_that_is_not_reached_whole_came_further_than_a_wrong_one():
    assert mended(told(["WRONG", UNREACHED]))["WRONG"]["got_further"] == 1
