"""The GPU gate: judge every kernel file on a few cases on a GPU, run `pytest -m gpu`, and write docs/results/gpu.json.

    make gpu                                                                    # python -m tests.gpu_gate
    python -m tests.gpu_gate [--only NAME ...] [--shard K/N] [--seconds 600]
    python -m tests.gpu_gate --defer "REASON"                                   # list what changed since as unjudged

Verdicts are kept in the workspace: a run that was interrupted goes on where it stopped. Ends with 0 if all passed, with
1 if something failed or is left, and with 2 for a bad argument (docs/results/gpu.md).
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

from enable.options import WORKSPACE, WORKSPACE_VARIABLE
from enable.workspace import Workspace
from generate.kernel_library import KERNELS, Library
from tests.gpu_gate import page as pages
from traces import UserError
from verify import platforms
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import JudgeClosed
from verify.lint import load_profile
from verify.platforms import Platform


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        self.exit(2, f"error: {message}; try: python -m tests.gpu_gate --help\n")


def main(words: Sequence[str] | None = None) -> int:
    """Run the gate and return the exit status."""
    options = parsed(words)
    try:
        platform = platforms.load(options.platform)
        profile = load_profile(platform.lint)
        platform = replace(platform, alignment=max(platform.alignment, profile.alignment))
        library = Library(options.library, blocks=profile.blocks)
        page = pages.read(options.out, platform.name)
        if options.defer is None:
            return judged(options, platform, library, page)
        page = pages.deferred(pages.keys_of(library), page, options.defer)
        pages.write(options.out, page)
        sys.stdout.write(
            f"{os.path.relpath(options.out)}: {len(page['unjudged'])} kernel files are listed as unjudged\n"
        )
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def parsed(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = Parser(prog="gpu_gate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    workspace = Path(os.environ.get(WORKSPACE_VARIABLE) or WORKSPACE)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="kernel files: group/name, or name")
    parser.add_argument("--shard", type=share, default=(1, 1), metavar="K/N", help="judge the K-th of N shares")
    parser.add_argument("--platform", default=pages.PLATFORM, choices=platforms.names(), help="default: %(default)s")
    parser.add_argument("--library", type=Path, default=KERNELS, help="a directory of kernel files, as GROUP/NAME.py")
    parser.add_argument("--workspace", type=Path, default=workspace, help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=pages.PAGE, help="the page; results are merged into it")
    parser.add_argument("--seconds", type=positive, default=600, help="of the whole run; default: %(default)s")
    parser.add_argument("--commit", help="what is judged, where no git checkout says so")
    parser.add_argument("--defer", type=reason, metavar="REASON", help="judge nothing; list what changed as unjudged")
    return parser.parse_args(words)


def share(text: str) -> tuple[int, int]:
    """Return K and N of `K/N`."""
    k, _, n = text.partition("/")
    if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
        raise argparse.ArgumentTypeError(f"{text!r} is not K/N with 1 <= K <= N, such as 1/4")
    return int(k), int(n)


def positive(text: str) -> int:
    """Return a number of seconds."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of whole seconds")
    return int(text)


def reason(text: str) -> str:
    """Return a reason, which may not be empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("a reason is missing")
    return text


def judged(options: argparse.Namespace, platform: Platform, library: Library, page: pages.Page) -> int:
    """Judge, write the page and print a summary; return the exit status."""
    from tests.gpu_gate.cases import SEED
    from tests.gpu_gate.judging import Results, judge_all, run_pytest  # imports OpInfo's helpers, which take a second

    keys, kernels = pages.keys_of(library), selected(library, options)
    run = {"commit": options.commit or commit(), "date": datetime.now(UTC).date().isoformat(), **machine(platform)}
    page = pages.begun(page, run, whole=len(kernels) == len(keys))
    tested = bool(platform.device) and not options.only and options.shard[0] == 1
    results, workspace = Results(), Workspace(options.workspace)
    for ends in (signal.SIGALRM, signal.SIGTERM):  # a time limit is as Ctrl-C
        signal.signal(ends, signal.default_int_handler)
    signal.alarm(options.seconds)
    try:
        judge_all(workspace, platform, library, kernels, results)
        page["pytest"] = run_pytest() if tested else page["pytest"]
    except (KeyboardInterrupt, JudgeClosed):
        sys.stderr.write("interrupted; the same command goes on where this one stopped\n")
    finally:
        signal.alarm(0)
        rows = {name: row for name in map(pages.name_of, kernels) if (row := results.row(name)) is not None}
        page["kernels"].update({name: {"key": keys[name], **row} for name, row in rows.items()})
        page = pages.concluded(keys, page, needs_pytest=bool(platform.device))
        pages.write(options.out, page)
    failures = {name: results.failure(name) for name in rows}
    for name, kernel in sorted((pages.name_of(kernel), kernel) for kernel in kernels if pages.name_of(kernel) in rows):
        if rows[name]["outcome"] != "PASS":
            sys.stdout.write(f"{rows[name]['outcome']} {name}: {rows[name]['detail']}\n")
        if (verdict := failures[name]) is not None:
            words = ("--platform", options.platform, "--seed", str(SEED), "--case", verdict.case)
            sys.stdout.write(f"  {workspace.command('verify', os.path.relpath(kernel.path), *words)}\n")
            sys.stdout.write(f"{verdict.report}\n" if options.only else "")
    left = [name for name in map(pages.name_of, kernels) if name not in rows]
    sys.stdout.write(summary(options, page, [row["outcome"] for row in rows.values()], left, tested))
    passed = all(row["outcome"] in pages.GOOD for row in rows.values()) and not left
    return 0 if passed and (not tested or pages.passed(page["pytest"])) else 1


def selected(library: Library, options: argparse.Namespace) -> list[KernelFile]:
    """Return the kernel files that the options name, in order. Raises UserError for one that does not exist."""
    kernels = {pages.name_of(kernel): kernel for kernel in sorted(library, key=lambda kernel: kernel.path)}
    names = list(kernels)
    if options.only:
        names = [n for n in kernels if not {n, n.rpartition("/")[2]}.isdisjoint(options.only)]
        known = {*kernels, *(n.rpartition("/")[2] for n in kernels)}
        for unknown in (n for n in options.only if n not in known):
            near = ", ".join(get_close_matches(unknown, known, 3, 0.4) or names[:3])
            raise UserError(f"no kernel file {unknown!r}; do you mean {near}?")
    k, n = options.shard
    return [kernels[name] for name in names[k - 1 :: n]]


def commit() -> str:
    """Return the commit of the working tree, with `-dirty` if it has changes. Raises UserError if git cannot say it."""
    command = ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty"]
    told = subprocess.run(command, cwd=pages.ROOT, capture_output=True, text=True) if shutil.which("git") else None
    if told is None or told.returncode:
        raise UserError("git does not say which commit this is; name it: --commit COMMIT")
    return told.stdout.strip()


def machine(platform: Platform) -> dict[str, str]:
    """Return the device and the versions that judge. Raises UserError if the machine lacks the device."""
    import torch

    device = "Triton's interpreter"
    if platform.devices():
        device = torch.get_device_module(platform.device).get_device_name()
    return {"device": device, "torch": version("torch"), "triton": version("triton")}


def summary(
    options: argparse.Namespace, page: pages.Page, outcomes: Sequence[str], left: Sequence[str], tested: bool
) -> str:
    """Return what came of a run, in a few lines."""
    counts = ", ".join(f"{outcome} {n}" for outcome, n in Counter(outcomes).most_common())
    lines = [f"{len(outcomes)} of {len(outcomes) + len(left)} kernel files judged{': ' if counts else ''}{counts}"]
    if set(outcomes) - set(pages.GOOD) and not options.only:
        lines.append("reports: python -m tests.gpu_gate --only NAME, also of calls that enable verify does not make")
    if left:
        lines.append(f"{len(left)} kernel files are left: {pages.some(left)}")
    if tested:
        tests = page["pytest"]
        counts = ", ".join(f"{n} {what}" for what, n in tests.items()) if tests else "not finished"
        lines.append(f"pytest -m gpu: {counts}")
    lines.append(f"{os.path.relpath(options.out)}: {pages.state(page)}")
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
