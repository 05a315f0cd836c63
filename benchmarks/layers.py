"""Which layer catches each bad kernel of a corpus, and which does when that one is switched off.

    python -m tests.support.corpus build/corpus
    python -m benchmarks.layers [--corpus build/corpus] [--only exp_direct_call ...] [--seed 1]

Prints a Markdown table: docs/results/judge.md holds one. A dash: nothing spoke, so the layers before stand alone.
Nothing: the layer before cannot be switched off, since without it there is no answer to judge.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from enable.cover.verification import VerifyRequest
from enable.cover.verifier import Verifier
from verify.judging.stages import TrialResult
from verify.outcome import OPTIONAL

DEPTH = 3  # layers that are named for each kernel


def main() -> None:
    """Judge each file again and again, each time without the layers that have spoken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=Path("build/corpus"))
    parser.add_argument("--only", nargs="*", help="names of files, without .py")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    files = sorted((options.corpus / "bad").glob("*.py"))
    chosen = [path for path in files if not options.only or path.stem in options.only]
    print("| kernel | caught by | without that | without both |\n|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory() as directory,
        Verifier(Path(directory), None, "sim", "triton-cuda", "full") as verifier,
    ):
        for path in chosen:
            request, told = VerifyRequest(seed=options.seed, limit=24), list[str]()
            for _ in range(DEPTH):
                found = verifier.verify(str(path), None, request)
                told.append(named(found))
                if found.layer not in OPTIONAL:
                    break
                request = replace(request, off=request.off | {found.layer})
            told += [""] * (DEPTH - len(told))
            print(f"| {path.stem} | {' | '.join(told)} |", flush=True)


def named(found: TrialResult) -> str:
    """The layer that spoke and the outcome."""
    return f"{found.layer} ({found.outcome})" if found.layer else "-"


if __name__ == "__main__":
    main()
