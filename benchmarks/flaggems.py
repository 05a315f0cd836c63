"""FlagGems beside benchmarks/kernels.py, in a process of its own: its kernels may end it, or tune for minutes."""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from torch._ops import OpOverload

from traces.overloads import name_of
from verify.child.devices import is_lost


class Gems:
    """Times FlagGems' kernels in this process, from a signature on. Prints a line before each and one after.

    timer: of kernels.py. asked: its arguments.
    """

    def __init__(self, timer: Any, asked: argparse.Namespace) -> None:
        self._timer, self._asked, self._number = timer, asked, -1

    def leave_out(self) -> None:
        """Count a signature of which there is no call."""
        self._number += 1

    def visit(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """SIGALRM ends the process where a signature takes too long."""
        import flag_gems  # type: ignore[import-not-found, unused-ignore]

        self._number, name = self._number + 1, name_of(func)
        if self._number < self._asked.gems or name in self._asked.skip:
            return
        line: dict[str, Any] = {"number": self._number, "name": name}
        print(json.dumps(line), flush=True)
        signal.alarm(self._asked.gems_each)
        try:
            with flag_gems.use_gems():
                has = name.removeprefix("aten::") in flag_gems.all_registered_keys()
                line["us"] = self._timer.gpu(lambda: func(*args, **kwargs)) if has else None
        except Exception as error:  # noqa: BLE001 - theirs may raise anything
            line["error"] = str(error).partition("\n")[0][:200]
            if is_lost(self._timer.device):
                raise SystemExit(line["error"]) from error
        signal.alarm(0)
        print(json.dumps(line), flush=True)


def beside(words: list[str], seconds: float) -> tuple[dict[tuple[int, str], float], dict[str, str]]:
    """FlagGems' times by the number of the signature and its overload, and what failed; empty if not installed.

    words: the script that runs `Gems`, and its arguments. seconds: how long it may take in all.
    """
    times: dict[tuple[int, str], float] = {}
    failed: dict[str, str] = {}
    skipped: list[str] = []
    first, ends = 0, time.monotonic() + seconds
    while importlib.util.find_spec("flag_gems") is not None:
        left = [word for name in skipped for word in ("--skip", name)]
        lines, why = _child([*words, "--gems", str(first), *left], ends)
        times.update({(line["number"], line["name"]): line["us"] for line in lines if line.get("us")})
        failed.update({f"FlagGems' {line['name']}": line["error"] for line in lines if "error" in line})
        if not why:
            break
        last: dict[str, Any] = lines[-1] if lines else {"number": first - 1, "us": None}
        first = last["number"] + 1
        if time.monotonic() > ends:
            failed["FlagGems"] = f"signatures from number {first} on were not reached in {seconds:.0f} s"
            break
        if "us" in last or "error" in last:  # it ended outside of a signature
            failed["FlagGems"] = why
            break
        skipped.append(last["name"])
        failed[f"FlagGems' {last['name']}"] = why
    return times, failed


def _child(words: list[str], ends: float) -> tuple[list[dict[str, Any]], str]:
    """The lines that a process with `Gems` prints until `ends` of the monotonic clock, and why it failed, if it did."""
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        command = [sys.executable, "-m", f"benchmarks.{Path(words[0]).stem}", *words[1:]]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace")
        stop = threading.Timer(max(ends - time.monotonic(), 0), child.kill)
        stop.start()
        lines = []
        for text in child.stdout or ():
            if re.fullmatch(r'\{"number": .*\}\n', text):  # kernels may print, too
                print(f"FlagGems: {text}", end="", file=sys.stderr)
                lines.append(json.loads(text))
        code = child.wait()
        stop.cancel()
        errors.seek(0)
        said = (errors.read().strip().splitlines() or [f"ended with {code}"])[-1][:200]
    return lines, "" if code == 0 else "over --gems-each seconds" if code == -signal.SIGALRM else said
