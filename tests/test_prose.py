"""Docstrings, comments, pages and names are in plain technical English, as far as rates of words can tell.

The bounds are what well-kept packages have (pytest, attrs, pydantic, torch._inductor, mypy, click), per 1,000 words.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from pathlib import Path

import pytest

from traces.packaging import PACKAGES

ROOT = Path(__file__).parents[1]
AT_MOST = {"what": 2, "where": 2, "of": 30}
AT_LEAST = {"return": 4}  # with its other forms
FORMS = {"returns": "return", "returned": "return"}
# Names that say nothing of what a value is.
BANNED = {"told", "found", "given", "several", "what", "others", "own", "held", "place", "there", "laid", "alike"}
# Names that stay, by module, with the reason.
EXCEPT = {
    "enable/survey/stages.py": {"found": "a field of ModelRow, which an interrupted survey stores as JSON"},
    "verify/platforms.py": {"place": "a field of Device, which is serialised for child processes"},
}


def modules(package):
    return sorted((ROOT / package).rglob("*.py"))


def docstrings(text):
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
    return [found for node in nodes if (found := ast.get_docstring(node)) is not None]


def comments(text):
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def rates(texts):
    """How often the words with a bound occur in 1,000 words."""
    words = re.findall(r"[a-z']+", "\n".join(texts).lower())
    counts = Counter(FORMS.get(word, word) for word in words)
    return {word: 1000 * counts[word] / max(len(words), 1) for word in (*AT_MOST, *AT_LEAST)}


def beyond(measured, bounds=tuple((*AT_MOST, *AT_LEAST))):
    """The rates that are not within their bounds."""
    high = {word: rate for word, rate in measured.items() if word in bounds and rate > AT_MOST.get(word, 1000)}
    low = {word: rate for word, rate in measured.items() if word in bounds and rate < AT_LEAST.get(word, 0)}
    return high | low


def banned(tree):
    """The banned names that a module binds."""
    bound = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    bound += [n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
    bound += [n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)]
    bound += [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    return [name for name in bound if name.lstrip("_") in BANNED]


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_have_the_rates_of_good_packages(package):
    assert beyond(rates(d for path in modules(package) for d in docstrings(path.read_text()))) == {}


def test_comments_have_the_rates_of_good_packages():
    texts = [c for package in PACKAGES for path in modules(package) for c in comments(path.read_text())]
    assert beyond(rates(texts), tuple(AT_MOST)) == {}


def test_mannered_prose_would_be_seen():
    text = 'def f():\n    """What is told of what others found, where it stands."""  # what\n'
    assert beyond(rates(docstrings(text))).keys() == {"what", "where", "of", "return"}
    assert comments(text) == ["# what"]
    assert banned(ast.parse("def told(given):\n    found = self._held = 1")) == ["found", "_held", "given", "told"]


PRINTERS = {"echo", "say", "_say", "write", "print", "Option", "Argument", "BadParameter"}


def messages(text):
    """The sentences that a module prints: arguments of errors, of functions that print, and of options."""
    for node in ast.walk(ast.parse(text)):
        raised = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(raised, ast.Call):
            continue
        name = ast.unparse(raised.func).rpartition(".")[2]
        if isinstance(node, ast.Raise) or name in PRINTERS or name.endswith("Error"):
            arguments = [*raised.args, *(keyword.value for keyword in raised.keywords)]
            constants = [n for a in arguments for n in ast.walk(a) if isinstance(n, ast.Constant)]
            yield from ((n.lineno, n.value) for n in constants if isinstance(n.value, str) and " " in n.value)


def test_messages_have_the_rates_of_good_packages():
    paths = [p for name in ("enable", "capture", "traces", "verify", "generate") for p in modules(name)]
    assert beyond(rates(m for path in paths for _, m in set(messages(path.read_text()))), tuple(AT_MOST)) == {}


def test_mannered_messages_would_be_seen():
    text = 'raise UserError(f"what of {x} is not told")\ntyper.Option("--x", help="where of what")\nf("what it is")\n'
    said = [message for _, message in messages(text)]
    assert sorted(set(said)) == [" is not told", "what of ", "where of what"]
    assert beyond(rates(said)).keys() >= {"what", "where", "of"}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_says_nothing(package):
    names = {path.relative_to(ROOT).as_posix(): set(banned(ast.parse(path.read_text()))) for path in modules(package)}
    left = {module: bound for module, bound in names.items() if bound}
    assert left == {module: set(kept) for module, kept in EXCEPT.items() if module in names}


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "platforms").glob("*.md")]
GENERATED = {"cli.md", "operators.md"}
SHORT = 300  # words, of which one more or less moves a rate by too much


def prose(text):
    """A page without its code."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("page", [p for p in sorted(PAGES) if p.name not in GENERATED], ids=lambda page: page.name)
def test_pages_have_the_rates_of_good_packages(page):
    text = prose(page.read_text())
    if len(text.split()) > SHORT:
        assert beyond(rates([text]), tuple(AT_MOST)) == {}


def test_no_page_is_longer_than_a_reader_has_patience_for():
    """But for references, and for pages that are mostly programs."""
    long = {page.name for page in PAGES if len(prose(page.read_text()).split()) > 1500}
    assert long - GENERATED == {"json.md"}
