"""The site of docs/ (mkdocs.yml): it is built without a warning, and what is wrong with a page's links is one."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from enable.reference import commands

pytest.importorskip("mkdocs")
pytest.importorskip("material")

ROOT = Path(__file__).parents[1]
PAGES = sorted(p.relative_to(ROOT / "docs") for p in (ROOT / "docs").rglob("*.md"))
ONE_STREAM = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src")}
GOOD = """
[To a file](../verify/child/unspecified.py), [a directory](../generate/), [a `heading`](../README.md#quickstart),
[data](results/library.json), ![a picture](results/dialogs.svg); `[code](../nowhere.py)` and

```text
[code](../nowhere.py)
```
"""
BAD = {  # what a page says, and what is said of it
    "[x](nowhere.md)": "'run.md' contains a link 'nowhere.md', but the target is not found",
    "[x](results/nowhere.json)": "'run.md' contains a link 'results/nowhere.json', but the target is not found",
    "[x](judge.md#nowhere)": "'run.md' contains a link 'judge.md#nowhere', but the doc 'judge.md' does not contain an",
    "[x](#nowhere)": "'run.md' contains a link '#nowhere', but there is no such anchor on this page",
    "[x](../verify/nowhere.py)": "'run.md' contains a link '../verify/nowhere.py', but the repository has no",
    "[x](../README.md#nowhere)": "'run.md' contains a link '../README.md#nowhere', but 'README.md' has no heading",
    "[x](../Makefile#L1)": "'run.md' contains a link '../Makefile#L1', but 'Makefile' has no heading '#L1'",
    "[x](../../elsewhere.md)": "'run.md' contains a link '../../elsewhere.md', but that is outside the repository",
}


class Page(HTMLParser):
    """The anchors of a page of the site, and its addresses: by element and attribute, and those of the navigation."""

    def __init__(self, file):
        super().__init__()
        self.anchors, self.addresses, self.navigation = set(), [], set()
        self.feed(file.read_text())

    def handle_starttag(self, tag, attrs):
        of = dict(attrs)
        self.anchors.add(of.get("id"))
        for name in ("href", "src"):
            if name in of:
                self.addresses.append(((tag, name), of[name]))
        if "md-nav__link" in of.get("class", "").split() and "href" in of:
            self.navigation.add(of["href"])


def build(config, site):
    """`mkdocs build --strict` as `make site` has it; what it prints is in stdout."""
    command = ["mkdocs", "build", "--strict", "--config-file", str(config), "--site-dir", str(site)]
    return subprocess.run([sys.executable, "-m", *command], cwd=config.parent, text=True, **ONE_STREAM)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, and its pages by file."""
    site = tmp_path_factory.mktemp("site")
    result = build(ROOT / "mkdocs.yml", site)
    assert result.returncode == 0, result.stdout
    return site, {file: Page(file) for file in site.rglob("*.html")}


@pytest.fixture
def repository(tmp_path):
    """A repository with pages of its own and all else of this one."""
    for entry in ("README.md", "Makefile", "mkdocs.yml", "mkdocs_hooks.py", "benchmarks", "generate", "verify"):
        (tmp_path / entry).symlink_to(ROOT / entry)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    return tmp_path


def add(repository, text):
    """Put a paragraph below the page run.md."""
    page = repository / "docs/run.md"
    page.write_text(f"{page.read_text()}\n{text}\n")


def test_every_page_is_in_the_navigation(site):
    directory, pages = site
    names = {page.with_suffix(".html").as_posix().replace("README", "index") for page in PAGES}
    assert pages[directory / "index.html"].navigation >= names and len(names) > 20
    assert {file.relative_to(directory).as_posix() for file in pages} == names | {"404.html"}


def test_nothing_comes_from_a_network(site):
    """Nor from the root of a server: the pages are opened as files. 404.html is for servers alone."""
    directory, pages = site
    loaded = {a for file, page in pages.items() if file.name != "404.html" for at, a in page.addresses if at in LOADED}
    assert any("assets/iframe-worker.js" in address for address in loaded)
    assert not [a for a in loaded if urlsplit(a).scheme or urlsplit(a).netloc or a.startswith("/")]
    styles = [file.read_text() for file in directory.rglob("*.css")]
    assert styles and not [text for text in styles if "@import" in text or "url(http" in text or "url(//" in text]


def test_what_the_site_leads_to_is_there(site):
    directory, pages = site
    followed = 0
    for file, page in pages.items():
        for _, address in page.addresses:
            parts = urlsplit(address)
            if parts.scheme or file.name == "404.html":
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            assert target.is_relative_to(directory.resolve()) and target.is_file(), (file, address)
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].anchors, (file, address)
            followed += 1
    assert followed > 1000


def test_each_command_has_a_heading(site):
    directory, pages = site
    wanted = {"-".join(["enable", *words]) for words in commands()}
    assert "enable-coverage" in wanted and wanted <= pages[directory / "cli.html"].anchors


def test_search_works_from_a_file(site, browser):
    """Where a browser starts no Worker: docs/assets/iframe-worker.js."""
    page = browser.new_page()
    page.goto(f"{(site[0] / 'platforms/sim.html').as_uri()}?q=gelu")
    page.get_by_text(re.compile(r"\d+ matching documents")).wait_for()
    links = page.locator(".md-search-result a").evaluate_all("all => all.map(link => link.href)")
    assert any(link.startswith((site[0] / "operators.html").as_uri()) for link in links)
    page.close()


def test_links_to_files_of_the_repository_become_text(repository, tmp_path):
    add(repository, GOOD)
    result = build(repository / "mkdocs.yml", tmp_path / "site")
    assert result.returncode == 0, result.stdout
    text = (tmp_path / "site/run.html").read_text()
    assert "<span>To a file</span>, <span>a directory</span>, <span>a <code>heading</code></span>" in text
    assert 'href="results/library.json"' in text and text.count("[code](../nowhere.py)") == 2


def test_a_wrong_link_fails(repository, tmp_path):
    text = "[x](../verify/nowhere.py)"
    add(repository, text)
    result = build(repository / "mkdocs.yml", tmp_path / "site")
    assert result.returncode == 1 and BAD[text] in result.stdout, result.stdout
    assert "Aborted with 1 warnings" in result.stdout  # of a good copy there is none


def test_whatever_is_wrong_is_a_warning(repository, tmp_path):
    """Each counts, so each fails by itself."""
    add(repository, "\n\n".join(BAD))
    (repository / "docs/results/more.md").write_text("# More\n")
    result = build(repository / "mkdocs.yml", tmp_path / "site")
    said = [*BAD.values(), 'not included in the "nav" configuration:\n  - results/more.md']
    assert not [message for message in said if message not in result.stdout], result.stdout
    assert result.returncode == 1 and f"Aborted with {len(said)} warnings" in result.stdout, result.stdout
