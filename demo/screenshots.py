"""Take the pictures of the report from the demo's workspace: make demo && python -m demo.screenshots.

They are docs/images/report.png, report-narrow.png (400 pixels wide), report-overloads.png (with the details of one),
report-trace.png and report-live.png (enable report --serve).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from traces.program import BUILTIN_NAME, NAME_VARIABLE

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
PROGRAM = Path(sys.executable).with_name("enable")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")  # else the one that `playwright install` keeps
FLAGS = ("--no-sandbox", "--disable-gpu", "--hide-scrollbars")
WIDE, NARROW, LONG = (1280, 900), (400, 800), (1280, 1300)  # pixels
MOST_BYTES = 250_000  # for one picture, so that the repository stays small
SECONDS = 120  # for a page to be ready


def main() -> None:
    """Write the pictures."""
    os.chdir(ROOT)  # the pages name the workspace by its path, which is short from here
    demo = Path(os.environ.get("DEMO", ".demo"))
    if not (demo / "workspace" / "traces" / "nanogpt.trace").is_dir():
        sys.exit(f"{demo}: no demo here; type: make demo")
    os.environ |= {"ENABLE_WORKSPACE": str(demo / "workspace"), "ENABLE_LIBRARY": str(demo / "library")}
    os.environ[NAME_VARIABLE] = BUILTIN_NAME  # the pages name commands as the documentation does
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as api, api.chromium.launch(executable_path=browser, args=list(FLAGS)) as chromium:
        with tempfile.TemporaryDirectory() as home:
            page = Path(home) / "report.html"
            subprocess.run([PROGRAM, "report", "--out", page], check=True, stdout=sys.stderr)
            for name, size in (("report.png", WIDE), ("report-narrow.png", NARROW)):
                with opened(chromium, page.as_uri(), size) as shown:
                    shown.locator("#main h2").first.wait_for(timeout=1000 * SECONDS)
                    save(shown, name)
            with opened(chromium, f"{page.as_uri()}#overloads", WIDE) as shown:
                shown.locator("#overloads .tabulator-row", has_text="aten::").first.press("Enter")
                shown.locator("#drawer-title").wait_for(timeout=1000 * SECONDS)
                save(shown, "report-overloads.png")
            with opened(chromium, f"{page.as_uri()}#traces", WIDE) as shown:
                shown.locator("#main h2").first.wait_for(timeout=1000 * SECONDS)
                save(shown, "report-trace.png")
        with served() as url, opened(chromium, url, LONG) as shown:
            shown.locator("#models tr", has_text="nanogpt").wait_for(timeout=1000 * SECONDS)
            dialog = shown.locator("#dialogs .tabulator-row").first
            if dialog.count():
                dialog.click()
                shown.locator("#turns .turn").first.wait_for(timeout=1000 * SECONDS)
                shown.evaluate("scrollTo(0, 0)")
            save(shown, "report-live.png")


@contextmanager
def opened(browser: Browser, url: str, size: tuple[int, int]):
    """Open a page in a window of this size."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme="light")
    page.goto(url)
    yield page
    page.close()


@contextmanager
def served():
    """Serve the live page; yields its URL."""
    process = subprocess.Popen([PROGRAM, "report", "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate()


def save(page: Page, name: str) -> None:
    """Write what the window shows, without empty space below it, and print the file and its size."""
    path, window = IMAGES / name, page.viewport_size
    height = min(window["height"], page.evaluate("Math.ceil(document.body.getBoundingClientRect().height)"))
    clip = {"x": 0, "y": 0, "width": window["width"], "height": height}
    size = len(page.screenshot(path=path, clip=clip, animations="disabled"))
    if size > MOST_BYTES:
        sys.exit(f"{path}: {size} bytes, more than {MOST_BYTES}; show less of the page")
    sys.stdout.write(f"{path.relative_to(ROOT)}: {size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()
