"""Chromium for the tests of pages: a test file starts it once, and each page has a context of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

CHROMIUM = shutil.which("chromium")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
SIZE = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser. It ends with the test file, because other files count this process's children."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium here")
    with (
        playwright.sync_playwright() as api,
        api.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS)) as started,
    ):
        yield started


@contextmanager
def clean_pages(browser: Any, **defaults: Any) -> Iterator[tuple[Callable[..., Any], set[str]]]:
    """A function that opens a URL, and the origins that its pages asked; at the end no page has logged anything."""
    messages: list[str] = []
    contexts: list[Any] = []
    origins: set[str] = set()

    def opened(url: str, **options: Any) -> Any:
        contexts.append(browser.new_context(**{"viewport": SIZE, **defaults, **options}))
        page = contexts[-1].new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: origins.add("{0.scheme}://{0.netloc}".format(urlsplit(request.url))))
        page.goto(url)
        return page

    yield opened, origins
    for context in contexts:
        context.close()
    assert messages == []
