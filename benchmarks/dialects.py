"""The tables of docs/results/dialects.md: what Triton compiles for targets without their hardware.

    python -m benchmarks.dialects run                # every target, 2 to 3 minutes each with 2 processes
    python -m benchmarks.dialects run sm_80 gfx942   # some targets; the results of the others stay
    python -m benchmarks.dialects write              # the page, from the stored results

The results are stored in docs/results/dialects.json.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from enable.discover.discovery import DiscoverOptions, Discovery, discover
from enable.discover.profile import base_lists
from enable.discover.rules import NOTE, derive
from enable.discover.verdicts import counts
from enable.tables import markdown_table

DIRECTORY = Path(__file__).parents[1] / "docs" / "results"
STORED, PAGE = DIRECTORY / "dialects.json", DIRECTORY / "dialects.md"
TARGETS: dict[str, tuple[str, int | str]] = {
    **{f"sm_{arch}": ("cuda", arch) for arch in (80, 90, 100)},
    **{arch: ("hip", arch) for arch in ("gfx90a", "gfx942", "gfx950")},
}
WORKS = "works"
HEAD = """\
# What Triton compiles for each target

For those who write a platform file, or work on a Triton backend. `enable platform discover` compiles a catalogue of
{entries} tiny programs for each target, without its hardware. This page lists the programs that a target refuses. It is
made by `python -m benchmarks.dialects write` from [dialects.json](dialects.json): Triton {triton}, PyTorch {torch}, two
processes on a CPU with two cores.

Nothing was run, so there are no verdicts `wrong` and `slow` here. To run the catalogue on a device,
see [the platform file](../platforms/platform-file.md#discover-the-file).

## Programs by target

"""
PLUGINS = """\

## Plugins

One package on PyPI declares a Triton backend: `triton-msl` 0.3.0, for Metal, written for Triton 3.7. With its files on
the path Triton 3.9 loads it, but each of four programs tried failed before it was compiled:
`KeyError: 'Keyword argument fpsan_homomorphic_casts was specified but unrecognised'`. Its programs also need Apple's
compiler.
"""


def stored() -> dict[str, Any]:
    return json.loads(STORED.read_text()) if STORED.is_file() else {"targets": {}}


def result(discovery: Discovery, seconds: float) -> dict[str, Any]:
    rules = derive(discovery.verdicts.values(), base_lists())
    return {
        "target": dict(discovery.target),
        "triton": discovery.triton,
        "torch": discovery.torch,
        "seconds": round(seconds),
        "groups": counts(discovery.verdicts.values()),
        "failures": {name: v.as_json() for name, v in discovery.verdicts.items() if v.failed},
        "rules": [{"kind": rule.kind, "key": rule.key, "value": rule.value} for rule in rules if rule.kind != NOTE],
    }


def run(names: list[str]) -> None:
    for name in names or TARGETS:
        backend, arch = TARGETS[name]
        started = time.monotonic()
        discovery = discover(DiscoverOptions(backend=backend, arch=arch))
        results = stored()
        results["targets"][name] = result(discovery, time.monotonic() - started)
        temporary = STORED.with_suffix(".new")
        temporary.write_text(json.dumps(results, indent=1) + "\n")
        temporary.replace(STORED)
        print(name, results["targets"][name]["seconds"], "s", flush=True)


def page(results: dict[str, Any]) -> str:
    targets = {name: results["targets"][name] for name in TARGETS if name in results["targets"]}
    first = next(iter(targets.values()))
    total = sum(row["entries"] for row in first["groups"])
    totals = [{"target": name, **_total(each["groups"]), "seconds": each["seconds"]} for name, each in targets.items()]
    parts = [HEAD.format(entries=total, triton=first["triton"], torch=first["torch"]), markdown_table(totals)]
    groups = [row["group"] for row in first["groups"]]
    parts += ["\n\n## Failures by group\n\n", markdown_table([_group(group, targets) for group in groups])]
    parts += ["\n\n## Smallest failing programs\n\n", INTRODUCTION, markdown_table(_failures(targets))]
    parts += ["\n\n## Reasons\n\n", _reasons(targets), "\n", PLUGINS]
    return "".join(parts)


INTRODUCTION = """\
Programs that fail only because a simpler one fails are left out: a conversion to a dtype that the target lacks, for
example. A number is the smallest block for which the program fails, if smaller blocks work.

"""


def _total(groups: list[dict[str, Any]]) -> dict[str, int]:
    columns = ("entries", WORKS, "not compiled", "crashed")
    return {column: sum(row[column] for row in groups) for column in columns}


def _group(group: str, targets: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"group": group}
    for name, each in targets.items():
        (found,) = (r for r in each["groups"] if r["group"] == group)
        row |= {"entries": found["entries"], name: found["entries"] - found[WORKS]}
    return row


def _simplest(each: dict[str, Any]) -> dict[str, Any]:
    return {name: failure for name, failure in each["failures"].items() if "explained_by" not in failure}


def _failures(targets: dict[str, Any]) -> list[dict[str, str]]:
    names = list(dict.fromkeys(name for each in targets.values() for name in _simplest(each)))
    rows = []
    for name in names:
        row = {"program": f"`{name}`"}
        for target, each in targets.items():
            failure = each["failures"].get(name)
            size = f" ({failure['smallest']['N']})" if failure and "largest_working" in failure else ""
            row[target] = WORKS if failure is None else f"{failure['verdict']}{size}"
        rows.append(row)
    return rows


def _reasons(targets: dict[str, Any]) -> str:
    """A list, because a table would cut the messages."""
    programs: dict[str, dict[str, None]] = {}
    refusing: dict[str, dict[str, None]] = {}
    for target, each in targets.items():
        for name, failure in _simplest(each).items():
            programs.setdefault(failure["message"], {})[name] = None
            refusing.setdefault(failure["message"], {})[target] = None
    lines = []
    for message, names in programs.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        quoted = message.replace("`", "'")
        lines.append(f"- `{next(iter(names))}`{more} on {', '.join(refusing[message])}: `{quoted}`")
    return "\n".join(lines)


if __name__ == "__main__":
    command, *names = sys.argv[1:] or ["--help"]
    if command == "run":
        run(names)
    elif command == "write":
        PAGE.write_text(page(stored()))
    else:
        sys.exit(__doc__)
