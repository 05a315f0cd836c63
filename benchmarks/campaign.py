"""What a campaign costs besides its model and its tests, and what it comes to when it is killed again and again.

    python -m benchmarks.campaign --operators 100 [--workers 1]
    python -m benchmarks.campaign --kills 30

Both record dialogs first, of a server on loopback that answers every prompt with prose, then with a kernel file that is
wrong or, for the killed campaign, right; what is measured replays them. The first prints the seconds of a campaign, of
them in the model and in tests, and the rest: trace, prompts, lint, journals. The second kills the command (its whole
process group, SIGKILL) at moments drawn at random, runs it to its end, and compares library, journals and calls with
those of a campaign left alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from generate.journal import read_journal
from generate.recording import to_recording

ROOT = Path(__file__).resolve().parent.parent

SAMPLED = """
    abs acos acosh addcdiv addcmul amax amin argmax argmin asin asinh atan atan2 atanh baddbmm ceil clamp
    copysign cos cosh cross cummax cummin cumprod cumsum deg2rad diff digamma dist dot eq erf erfc erfinv exp2
    expm1 fill flip floor fmax fmin fmod frac ge gt heaviside hypot i0 igamma index_add index_select isinf isnan
    kthvalue le lerp lgamma log log10 log1p log2 logaddexp logcumsumexp logit logsumexp lt masked_fill maximum
    minimum mode mv nan_to_num ne nextafter norm outer polar prod rad2deg reciprocal remainder renorm roll round
    rsqrt searchsorted sgn sigmoid sign sin sinc sinh sort square std take tan tanh topk trace triu trunc var
    xlogy nn.functional.silu nn.functional.elu nn.functional.hardswish nn.functional.leaky_relu
    nn.functional.mish nn.functional.softplus
"""
KILLED = ("exp", "reciprocal", "sqrt")  # that the library has, so that there is a right answer


class _Model(BaseHTTPRequestHandler):
    """Prose to a first prompt, a kernel file to the next. right: the library's, else the example's under a new name."""

    right = False

    def do_POST(self) -> None:
        messages = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
        answer = "I shall think about it." if len(messages) == 2 else self._file(messages[1]["content"])
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}
        usage = {"prompt_tokens": 5000, "completion_tokens": 800, "total_tokens": 5800}
        body = json.dumps({"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _file(self, prompt: str) -> str:
        overload = re.search(r"kernel file for `([^`]+)`", prompt)
        schema = re.search(r"^    (aten::.*)$", prompt, re.MULTILINE)
        assert overload is not None
        assert schema is not None
        name = overload[1].removeprefix("aten::")
        if self.right:
            source = (ROOT / "generate" / "kernels" / "pointwise" / f"{name}.py").read_text()
        else:
            example = (ROOT / "generate" / "examples" / "exp.py").read_text()
            source = re.sub(r'^"""aten::exp.*$', f'"""{schema[1]}', example, count=1, flags=re.MULTILINE)
            source = source.replace('("aten::exp",)', f'("{overload[1]}",)')
        return f"```python\n{source}```\n"

    def log_message(self, *args: Any) -> None:
        """Silence."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operators", type=int, default=0, help="of the dry campaign")
    parser.add_argument("--workers", type=int, default=1, help="dialogs at once in the dry campaign")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    if not options.operators and not options.kills:
        parser.error("say what to do: --operators N or --kills N")
    with tempfile.TemporaryDirectory(prefix="campaign-") as directory:
        if options.operators:
            dry(Path(directory) / "dry", options.operators, options.workers)
        if options.kills:
            killed(Path(directory) / "killed", options.kills, options.seed)


def enable(home: Path, *arguments: str, url: str = "") -> dict[str, Any]:
    """What a command printed as JSON. Raises CalledProcessError for exit status 2."""
    words = [sys.executable, "-m", "enable", *arguments, "--json"]
    run = subprocess.run(words, cwd=home, capture_output=True, text=True, env=environment(home, url), check=False)
    if run.returncode not in (0, 1):
        raise subprocess.CalledProcessError(run.returncode, words, run.stdout, run.stderr)
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def environment(home: Path, url: str = "") -> dict[str, str]:
    """Of a command there."""
    kernels = {"ENABLE_LIBRARY": str(home / "library")} if (home / "library").is_dir() else {}
    return {**os.environ, **kernels, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": url}


def prepare(home: Path, operators: tuple[str, ...], settings: str, right: bool) -> None:
    """A trace of some operators of OpInfo, and a campaign's dialogs recorded for `replay`."""
    home.mkdir(parents=True)
    if right:
        shutil.copytree(ROOT / "generate" / "kernels", home / "library")
        for name in operators:
            (home / "library" / "pointwise" / f"{name}.py").unlink()
    chosen = [word for name in operators for word in ("--op", name)]
    enable(home, "capture", "opinfo", *chosen, "--dtype", "float32")
    (home / "talk.toml").write_text(settings + '[model]\nprovider = "openai"\nname = "m"\n')
    (home / "campaign.toml").write_text(settings + '[model]\nrecordings = "recordings"\n')
    (home / "recordings").mkdir()
    _Model.right = right
    with ThreadingHTTPServer(("127.0.0.1", 0), _Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        enable(home, "generate", "--config", "talk.toml", url=f"http://127.0.0.1:{server.server_address[1]}/v1")
        server.shutdown()
    for journal in (home / ".enable" / "campaigns").rglob("journal.jsonl"):
        to_recording(journal, home / "recordings" / f"{journal.parents[1].name}.jsonl")
    for path in (home / ".enable").iterdir():
        if path.name != "traces":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def dry(home: Path, operators: int, workers: int) -> None:
    """Print where the time of a campaign goes whose every answer is recorded."""
    settings = f'name = "dry"\nquery = "lacking in opinfo"\nmost = {operators}\nworkers = {workers}\n'
    prepare(home, tuple(SAMPLED.split()), settings + "limits.dialogs = 1\nlimits.calls = 2\n", right=False)
    begun = time.monotonic()
    found = enable(home, "generate", "--config", "campaign.toml")
    wall = time.monotonic() - begun
    rows = found["operators"]
    model, tests = (sum(row["seconds"][name] for row in rows) for name in ("model", "tests"))
    rest = sum(row["seconds"]["all"] for row in rows) - model - tests
    print(f"{len(rows)} operators, {found['calls']} LLM calls, {workers} at once, {os.cpu_count()} cores")
    print(f"  whole command      {wall:8.2f} s")
    print(f"  in the model       {model:8.2f} s, in tests {tests:.2f} s, added up over workers")
    print(f"  in dialogs besides {rest:8.2f} s, {1000 * rest / len(rows):.1f} ms an operator")
    if workers == 1:
        print(f"  outside of dialogs {wall - sum(row['seconds']['all'] for row in rows):8.2f} s: start, trace, results")


def killed(home: Path, kills: int, seed: int) -> None:
    """Print whether a campaign that is killed comes to what one left alone comes to."""
    settings = 'name = "killed"\nquery = "lacking in opinfo"\nworkers = 2\n'
    prepare(home, KILLED, settings, right=True)
    alone = home.with_name("alone")
    shutil.copytree(home, alone)
    begun = time.monotonic()
    enable(alone, "generate", "--config", "campaign.toml")
    length = time.monotonic() - begun
    expected, draw, done, ended, differing = what_remains(alone), random.Random(seed), 0, 0, 0
    place = home
    while done < kills:
        if place is home or ended_in(place):
            place = home.with_name(f"round-{ended}")
            shutil.copytree(home, place)
            ended += 1
        words = [sys.executable, "-m", "enable", "generate", "--config", "campaign.toml"]
        process = subprocess.Popen(
            words,
            cwd=place,
            env=environment(place),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        begun = time.monotonic()
        try:
            process.wait(draw.uniform(0.1, 1.0) * length)
            length = max(0.9 * length, time.monotonic() - begun)  # the machine may have become quieter
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            done += 1
        if ended_in(place):
            differing += not same(place, expected)
    if not ended_in(place):
        enable(place, "generate", "--config", "campaign.toml")
        differing += not same(place, expected)
    print(f"killed {done} times in {ended} campaigns of {length:.1f} s: {differing} differ from one left alone")
    if differing:
        raise SystemExit(1)


def ended_in(home: Path) -> bool:
    """Whether each operator of the campaign has its kernel in the library and its line in the results."""
    results = home / ".enable" / "campaigns" / "killed" / "results.jsonl"
    return results.is_file() and results.read_text().count("\n") == len(KILLED)


def what_remains(home: Path) -> tuple[Any, ...]:
    """Library, events of the journals, and counts: what has to be the same however it came about."""
    kernels = {p.name: p.read_text() for p in (home / ".enable" / "kernels").glob("*/*.py")}
    place = home / ".enable" / "campaigns" / "killed"
    journals = {p.parents[1].name: read_journal(p) for p in place.rglob("journal.jsonl")}
    events = {name: [r["event"] for r in records if "event" in r] for name, records in journals.items()}
    rows = [json.loads(line) for line in (place / "results.jsonl").read_text().splitlines()]
    return kernels, events, {row["overload"]: (row["exit"], row["calls"], row["dialogs"]) for row in rows}


def same(home: Path, expected: tuple[Any, ...]) -> bool:
    """Whether that is so; if not, what differs is printed."""
    found = what_remains(home)
    if found != expected:
        print(f"{home.name}: {found[1:]} instead of {expected[1:]}")
    return found == expected


if __name__ == "__main__":
    main()
