"""The settings of a campaign: read word by word, refused in one line."""

from pathlib import Path

import pytest

from generate.campaign import fields, load, parse
from traces import UserError

ROOT = Path(__file__).parents[2]


def test_the_documentation_has_every_setting():
    text = (ROOT / "docs" / "campaigns.md").read_text()
    for name, default, what in fields():
        shown = default if default == "-" else f"`{default}`"
        assert f"| `{name}` | {shown} | {what} |" in text


def test_options_go_before_the_file(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('query = "lacking in opinfo"\nworkers = 3\n[limits]\ncalls = 2\n')
    found = load(file, operators=("aten::exp",), limits__calls=7, model__name="m", workers=None)
    assert (found.operators, found.query, found.workers) == (("aten::exp",), "", 3)
    assert (found.limits.calls, found.model.name) == (7, "m")


def test_an_option_of_a_table_that_the_file_has_as_a_text_is_refused(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('operators = ["exp"]\nmodel = "gpt"\n')
    with pytest.raises(UserError, match="model = 'gpt'"):
        load(file, model__name="m")


@pytest.mark.parametrize(
    "told, message",
    [
        ({}, "name one of the two"),
        ({"query": "lacking in opinfo", "operators": ["exp"]}, "name one of the two"),
        ({"operators": ["exp"], "worker": 3}, "worker: there is no such setting; there are: name, operators"),
        ({"operators": ["exp"], "limits": {"call": 3}}, "limits.call: there is no such setting; there are: dialogs"),
        ({"operators": ["exp"], "workers": "3"}, "workers = '3'"),
        ({"operators": ["exp"], "workers": 0}, "workers = 0"),
        ({"operators": ["exp"], "model": "gpt"}, "model = 'gpt'"),
        ({"operators": ["exp"], "budget": {"money": 1.0}}, "budget.money needs model.price"),
        ({"operators": ["exp"], "name": "a/b"}, "name = 'a/b'"),
    ],
)
def test_what_makes_no_sense_is_refused(told, message):
    with pytest.raises(UserError) as error:
        parse(told, "c.toml")
    assert message in str(error.value) and str(error.value).startswith("c.toml: ")
    assert "\n" not in str(error.value)
