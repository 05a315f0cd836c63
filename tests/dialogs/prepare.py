"""Make what recorded dialogs are held on, in the working directory: in the workspace a trace of the operator tests of
opinfo.txt, and `library`, the packaged kernels without those of the operators that were asked for.

    python -m tests.dialogs.prepare first [OPERATOR ...]    # of these operator tests alone
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from tests.support.shared import without

HERE = Path(__file__).resolve().parent
CAMPAIGNS = {"first": ("float32", "bfloat16"), "broad": ("float32", "bfloat16", "int64")}  # dtypes of the trace


def prepare(which: str, home: Path, only: Sequence[str] = ()) -> None:
    """Both, in `home`. only: names of OpInfo, by default all of opinfo.txt."""
    chosen = only or (HERE / which / "opinfo.txt").read_text().split()
    names = [word for name in chosen for word in ("--op", name)]
    dtypes = [word for name in CAMPAIGNS[which] for word in ("--dtype", name)]
    subprocess.run([sys.executable, "-m", "enable", "capture", "opinfo", *names, *dtypes], cwd=home, check=True)
    without(asked(which), home / "library")


def asked(which: str) -> list[str]:
    """The operators of the campaign."""
    return list(tomllib.loads((HERE / which / "campaign.toml").read_text())["operators"])


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in CAMPAIGNS:
        raise SystemExit(f"usage: python -m tests.dialogs.prepare {'|'.join(CAMPAIGNS)} [OPERATOR ...]")
    prepare(sys.argv[1], Path.cwd(), sys.argv[2:])
