"""The page of the GPU gate, docs/results/gpu.json: the kernel files that a GPU judged, by their keys, and the others.

The gate writes it, tests/kernels/test_gpu_page.py compares it with the library, and

    python -m tests.gpu_gate.page

writes the line of README.md that names the last green gate. Nothing here imports torch.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from traces import UserError
from traces.format import write_durably
from verify.contract.kernel_file import KernelFile

ROOT = Path(__file__).resolve().parents[2]
PAGE, README = ROOT / "docs" / "results" / "gpu.json", ROOT / "README.md"
PLATFORM = "cuda"
GOOD = ("PASS", "SKIPPED")  # outcomes of a kernel file that do not speak against it
MOST_NAMES = 8  # of a message
_LINE = re.compile(r"^Last GPU gate: .*$", re.MULTILINE)
_ROWS = ("kernels", "unjudged")  # have a line for each file

Page: TypeAlias = dict[str, Any]


def empty(platform: str) -> Page:
    """Return the page of a platform on which nothing has been judged.

    commit, date: of the last run. device, torch, triton: that of all judged kernels. kernels: by file its key, outcome,
    numbers of cases, and what failed. unjudged: by file why it may differ from what was judged. pytest: counts of
    `pytest -m gpu`, None if the commit has none. complete: whether nothing is left to judge. green: the last run after
    which all passed.
    """
    what = dict.fromkeys(("commit", "date", "device", "torch", "triton"), "")
    return {"platform": platform, **what, "complete": False, "pytest": None, "kernels": {}, "unjudged": {}, "green": {}}


def read(path: Path, platform: str = PLATFORM) -> Page:
    """Return the page in a file, an empty one if there is no file. Raises UserError for one of another platform."""
    if not path.exists():
        return empty(platform)
    try:
        page = {**empty(""), **json.loads(path.read_text(encoding="utf-8"))}
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path}: not a page of the GPU gate ({error}); name another file with --out") from error
    if page["platform"] != platform:
        raise UserError(f"{path}: of platform {page['platform']!r}, not {platform!r}; name another file with --out")
    return page


def write(path: Path, page: Page) -> None:
    """Write a page, in order and with a line for each kernel file, so that differences can be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = ",\n".join(f"  {json.dumps(name)}: {_value(name, page[name])}" for name in sorted(page))
    write_durably(path, [f"{{\n{fields}\n}}\n".encode()])


def _value(name: str, value: Any) -> str:
    if name not in _ROWS or not value:
        return json.dumps(value, sort_keys=True)
    rows = ",\n".join(f"    {json.dumps(n)}: {json.dumps(value[n], sort_keys=True)}" for n in sorted(value))
    return f"{{\n{rows}\n  }}"


def name_of(kernel: KernelFile) -> str:
    """Return what the page calls a kernel file: `group/name`."""
    return f"{kernel.path.parent.name}/{kernel.path.stem}"


def keys_of(library: Iterable[KernelFile]) -> dict[str, str]:
    """Return by name the key of each kernel file, with those of the files that it calls."""
    return {name_of(kernel): "+".join(k.key for k in (kernel, *kernel.reached)) for kernel in library}


def changed(keys: Mapping[str, str], page: Page) -> list[str]:
    """Return the kernel files that the page does not have as they are."""
    return sorted(name for name, key in keys.items() if page["kernels"].get(name, {}).get("key") != key)


def complaint(keys: Mapping[str, str], page: Page) -> str:
    """Return which kernel files changed since a GPU judged them and are not listed as such; empty if there are none."""
    names = [name for name in changed(keys, page) if name not in page["unjudged"]]
    return (
        names
        and (
            f"not judged on a GPU as they are: {some(names)}; on a machine with one: make gpu; "
            'to put it off: python -m tests.gpu_gate --defer "REASON"'
        )
        or ""
    )


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{', '.join(names[:MOST_NAMES])}{more}"


def deferred(keys: Mapping[str, str], page: Page, reason: str) -> Page:
    """Return the page with a reason for each kernel file that changed; those that had one keep it."""
    return {**page, "unjudged": {name: page["unjudged"].get(name, reason) for name in changed(keys, page)}}


def begun(page: Page, run: Mapping[str, str], whole: bool) -> Page:
    """Return the page for a run to add to: without kernels that another device, PyTorch or Triton judged, and without
    the tests of another commit. Raises UserError if such kernels would be lost though the run does not judge all."""
    before, here = ([of[name] for name in ("device", "torch", "triton")] for of in (page, run))
    kernels = page["kernels"] if before == here else {}
    if page["kernels"] and not kernels and not whole:
        theirs, ours = ("{}, torch {}, triton {}".format(*of) for of in (before, here))
        raise UserError(f"the page is of {theirs}, this is {ours}; judge all kernel files, or name another with --out")
    tests = page["pytest"] if page["commit"] == run["commit"] else None
    return {**page, **run, "pytest": tests, "kernels": dict(kernels)}


def concluded(keys: Mapping[str, str], page: Page, needs_pytest: bool) -> Page:
    """Return the page of a run with what follows from its kernels and tests: unjudged, complete and green."""
    kernels = {name: row for name, row in page["kernels"].items() if name in keys}
    page = {**page, "kernels": kernels}
    missing = changed(keys, page)
    page["unjudged"] = {name: reason for name, reason in page["unjudged"].items() if name in missing}
    page["complete"] = not missing and (page["pytest"] is not None or not needs_pytest)
    if is_green(page):
        page["green"] = {**{name: page[name] for name in ("commit", "date", "device")}, "kernels": len(kernels)}
    return page


def is_green(page: Page) -> bool:
    """Return True if everything was judged and nothing failed."""
    good = all(row["outcome"] in GOOD for row in page["kernels"].values())
    return page["complete"] and good and (page["pytest"] is None or passed(page["pytest"]))


def state(page: Page) -> str:
    """Return `green`, `incomplete` or, if all is known and something failed, `failed`."""
    return "green" if is_green(page) else "failed" if page["complete"] else "incomplete"


def passed(tests: dict[str, int] | None) -> bool:
    """Return True if tests ran and none failed."""
    return tests is not None and tests["passed"] > 0 and not tests["failed"]


def line(page: Page) -> str:
    """Return the line of README.md about the last green gate."""
    green = page["green"]
    if not green:
        return "Last GPU gate: none yet."
    return f"Last GPU gate: {green['date']}, commit {green['commit']}, {green['kernels']} kernels on {green['device']}."


def line_in(text: str) -> str:
    """Return the line that a text has of it; empty if it has none."""
    return next(iter(_LINE.findall(text)), "")


def main() -> int:
    """Write the line of README.md."""
    text = README.read_text(encoding="utf-8")
    README.write_text(_LINE.sub(lambda _: line(read(PAGE)), text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
