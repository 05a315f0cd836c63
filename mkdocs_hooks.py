"""Hooks for MkDocs (mkdocs.yml): links from docs/ to other files in the repository.

A reader of the repository can follow `../verify/child/unspecified.py`, but the site does not hold that file. So the
hook checks the link and leaves its text as plain text. It logs a warning for a broken link, with which
`mkdocs build --strict` fails.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

_log = logging.getLogger("mkdocs.hooks.repository")  # `--strict` counts the warnings of loggers under "mkdocs"
_PRIORITY = 10  # text has become links with 20, and MkDocs looks at them with 0


def on_page_markdown(text: str, *, page: Page, config: MkDocsConfig, **_: object) -> str:
    """Register the check of a page's links before MkDocs renders the page."""
    config["markdown_extensions"] = [*_others(config), RepositoryLinks(page.file.src_uri, config)]
    return text


def _others(config: MkDocsConfig) -> list[str | Extension]:
    """Return the Markdown extensions of mkdocs.yml and of plugins."""
    return [extension for extension in config.markdown_extensions if not isinstance(extension, RepositoryLinks)]


class RepositoryLinks(Extension):
    """Of a page, checks the links that leave docs/ and makes plain text of them."""

    def __init__(self, page: str, settings: MkDocsConfig) -> None:
        super().__init__()
        self.page = page
        self.settings = settings

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the tree processor; Markdown calls this for each page."""
        md.treeprocessors.register(_Links(self), "repository_links", _PRIORITY)

    def target(self, href: str) -> Path | None:
        """Return the file that a link leads to, or None if the link stays inside docs/."""
        link, docs = urlsplit(href), Path(self.settings.docs_dir)
        if link.scheme or link.netloc or not link.path or link.path.startswith("/"):
            return None
        target = Path(os.path.normpath(docs / Path(self.page).parent / unquote(link.path)))
        return None if target.is_relative_to(docs) else target

    def problem(self, target: Path, anchor: str) -> str | None:
        """Return the problem with a link to a file outside docs/, or None."""
        repository = Path(self.settings.config_file_path).parent
        if not target.is_relative_to(repository):
            return "that is outside the repository"
        file = target.relative_to(repository)
        if not target.exists():
            return f"the repository has no '{file}'"
        if anchor and anchor not in self._anchors(target):
            return f"'{file}' has no heading '#{anchor}'"
        return None

    def _anchors(self, target: Path) -> set[str]:
        """Return the anchors in a Markdown file; other files have none that can be checked."""
        if target.suffix != ".md":
            return set()
        named = [extension for extension in _others(self.settings) if isinstance(extension, str)]
        md = Markdown(extensions=named, extension_configs=self.settings.mdx_configs)
        return set(re.findall(r'<h\d id="([^"]+)"', md.convert(target.read_text(encoding="utf-8"))))


class _Links(Treeprocessor):
    def __init__(self, links: RepositoryLinks) -> None:
        super().__init__()
        self.links = links

    def run(self, root: Element) -> None:
        """Check the links in a page's tree, and replace them by their text."""
        for element in root.iter("a"):
            href = element.get("href", "")
            target = self.links.target(href)
            if target is None:
                continue
            problem = self.links.problem(target, urlsplit(href).fragment)
            if problem:
                _log.warning("Doc file '%s' contains a link '%s', but %s.", self.links.page, href, problem)
            element.tag = "span"
            element.attrib.clear()
