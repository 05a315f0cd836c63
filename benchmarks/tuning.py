"""The campaign of docs/results/tune.md: kernels that stand behind ATen, searched for speed with recorded answers.

    python -m benchmarks.tuning record WORKSPACE          # a trace of calls, at sizes of models
    python -m benchmarks.tuning judge WORKSPACE           # every candidate, several operators at once; no times
    python -m benchmarks.tuning search WORKSPACE OUT      # the campaign, one operator after the other, on a GPU
    python -m benchmarks.tuning write OUT docs/results/tune.md

Verdicts are kept, so that the campaign itself waits for times alone. OUT gets what each run printed, the times it took
(to replay them without a GPU: --times) and the journals of its tree.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from capture import Recorder
from generate.journal import slug
from generate.llm.turns import SHIPPED
from generate.recording import load_recordings, overload_of

TRACE = "tuning"
BRANCHES = "tuning-branches"
DTYPES = (torch.float32, torch.bfloat16)
FLAT = (1024, 16384, 131072, 1 << 20, 1 << 22)
SETTINGS = ("aten::nll_loss_backward", "aten::affine_grid_generator", "aten::unfold_backward")  # without an LLM
FIRST = (
    "aten::_cdist_forward",
    "aten::_euclidean_dist",
    "aten::_embedding_bag",
    "aten::embedding_dense_backward",
    "aten::_chunk_cat",
    "aten::_ctc_loss",
    "aten::_ctc_loss_backward",
    "aten::sum",
    "aten::_grouped_mm",
    "aten::cat",
    "aten::native_layer_norm",
    "aten::nll_loss_backward",
    "aten::arange",
)
SECONDS = 100  # of one search
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def record(workspace: Path) -> None:
    """Record the calls; those of one operator differ in sizes and dtypes. Nothing is timed on BRANCHES: what the
    recorded candidates ask of a call comes out either way with them, where no call of a model's size is the other."""
    with _recorded(workspace, TRACE):
        for dtype in DTYPES:
            _elements(dtype)
            _rows(dtype)
            _joins(dtype)
            _losses(dtype)
            _products(dtype)
        for dtype in DTYPES:
            _bags(dtype)
            _windows(dtype)
            _chunks(dtype)
            _lookups(dtype)
        _distances()
        _alignments()
    with _recorded(workspace, BRANCHES):
        _branches()


def _recorded(workspace: Path, name: str) -> Recorder:
    path = workspace / "traces" / f"{name}.trace"
    shutil.rmtree(path, ignore_errors=True)
    torch.manual_seed(0)
    return Recorder(path, values="full", max_bytes=4 << 30)


def _branches() -> None:
    torch.ops.aten.avg_pool2d(torch.randn(1, 32, 257, 257), [2, 2], [1, 1], [0, 0])
    for shape, kernel, stride in (((2, 3, 9, 7), 2, 2), ((2, 3, 24, 24), 5, 5), ((2, 3, 24, 24), 7, 1)):
        x = torch.randn(shape)
        how = [kernel] * 2, [stride] * 2, [0, 0]
        for padded in (True, False):
            found = torch.ops.aten.avg_pool2d(x, *how, False, padded)
            torch.ops.aten.avg_pool2d_backward(found, x, *how, False, padded, None)
    weights = torch.rand(24)[::2]
    torch.ops.aten._embedding_bag(
        torch.randn(10, 8), torch.randint(0, 10, (12,)), torch.arange(0, 12, 3), False, 0, False, weights
    )
    torch.ops.aten._chunk_cat([torch.randn(2049, 2049)], 0, 2)
    for steps, count in ((3, 1025), (80, 32)):
        scores, labels = torch.randn(steps, 2, 5).log_softmax(2), torch.randint(1, 5, (2, count))
        _aligned(scores, labels, [steps, steps], [count, 2])


def _aligned(scores: torch.Tensor, labels: torch.Tensor, *lengths: list[int]) -> None:
    losses, alpha = torch.ops.aten._ctc_loss(scores, labels, *lengths)
    torch.ops.aten._ctc_loss_backward(torch.ones_like(losses), scores, labels, *lengths, losses, alpha, 0)


def _elements(dtype: torch.dtype) -> None:
    for n in FLAT:
        x = torch.randn(n, dtype=dtype)
        torch.sigmoid(x)
        torch.clamp(x, -0.5, 0.5)
        torch.sum(x)
        torch.arange(n, dtype=torch.int64 if dtype == torch.bfloat16 else torch.float32)
    torch.arange(0.0, 100.0, 0.01 if dtype == torch.bfloat16 else 0.0005)


def _rows(dtype: torch.dtype) -> None:
    for m, n in ((64, 256), (2048, 768), (256, 1024), (8192, 128), (32, 4096)):
        x, weight = torch.randn(m, n, dtype=dtype), torch.randn(n, dtype=dtype)
        torch.nn.functional.layer_norm(x, (n,), weight, weight)
        torch.sum(x, -1)
    torch.sum(torch.randn(1024, 256, dtype=dtype), 0)


def _joins(dtype: torch.dtype) -> None:
    for count, shape, dim in ((2, (256, 768), 1), (3, (1024, 64), 1), (2, (1 << 18,), 0), (4, (512, 512), 0)):
        parts = [torch.randn(shape, dtype=dtype) for _ in range(count)]
        torch.cat(parts, dim)
        torch.stack(parts, dim)
    for count in (2, 6):
        parts = [torch.randn(128, 100, dtype=dtype) for _ in range(count)]
        torch.cat(parts, 0)
        torch.stack(parts, 0)


def _products(dtype: torch.dtype) -> None:
    for groups, rows, depth, width in ((4, 1024, 512, 1024), (8, 2048, 1024, 1024), (8, 512, 256, 512)):
        ends = torch.arange(1, groups + 1, dtype=torch.int32) * (rows // groups)
        x, weights = torch.randn(rows, depth, dtype=dtype), torch.randn(groups, depth, width, dtype=dtype)
        torch.ops.aten._grouped_mm(x, weights, ends)
        torch.ops.aten._grouped_mm(x, weights.transpose(1, 2).contiguous().transpose(1, 2), ends)


def _bags(dtype: torch.dtype) -> None:
    for rows, width, count, bags in (
        (100000, 64, 65536, 2048),
        (20000, 128, 16384, 128),
        (1000, 16, 4096, 4096),
        (10000, 256, 8192, 512),
    ):
        table, offsets = torch.randn(rows, width, dtype=dtype), torch.arange(bags) * (count // bags)
        for mode, weights in ((0, None), (0, torch.rand(count, dtype=dtype)), (1, None)):
            indices = torch.randint(0, rows, (count,))
            torch.ops.aten._embedding_bag(table, indices, offsets, False, mode, False, weights)


def _windows(dtype: torch.dtype) -> None:
    for shape, kernel, stride, padding in (
        ((8, 64, 112, 112), 3, 2, 1),
        ((32, 256, 28, 28), 2, 2, 0),
        ((8, 512, 14, 14), 3, 1, 1),
        ((4, 16, 224, 224), 2, 2, 0),
        ((64, 128, 7, 7), 7, 1, 0),
    ):
        x = torch.randn(shape, dtype=dtype)
        how = [kernel] * 2, [stride] * 2, [padding] * 2
        found = torch.ops.aten.avg_pool2d(x, *how)
        torch.ops.aten.avg_pool2d_backward(found, x, *how, False, True, None)
        torch.ops.aten.max_pool2d_with_indices(x, *how)


def _chunks(dtype: torch.dtype) -> None:
    layer = ((768,), (768,), (2304, 768), (2304,), (768, 768), (768,), (3072, 768), (3072,), (768, 3072), (768,))
    for shapes, chunks in ((2 * layer, 8), (layer, 2), (12 * ((256,), (64, 64)), 4), (3 * ((64, 3, 7, 7), (1000,)), 8)):
        torch.ops.aten._chunk_cat([torch.randn(shape, dtype=dtype) for shape in shapes], 0, chunks)


def _distances() -> None:
    for x, y, orders in (
        ((4096, 64), (4096, 64), (2.0, 1.0)),
        ((1024, 128), (1024, 128), (2.0,)),
        ((8, 512, 32), (8, 512, 32), (2.0, float("inf"))),
        ((256, 16), (2048, 16), (2.0, 1.0)),
        ((100, 3), (100, 3), (2.0,)),
    ):
        rows, others = torch.randn(x), torch.randn(y)
        torch.ops.aten._euclidean_dist(rows, others)
        for order in orders:
            torch.ops.aten._cdist_forward(rows, others, order, None)


def _alignments() -> None:
    for steps, count, classes, longest in (
        (256, 32, 64, 64),
        (64, 8, 32, 16),
        (512, 16, 128, 100),
        (50, 4, 20, 10),
        (128, 128, 30, 40),
    ):
        scores = torch.randn(steps, count, classes).log_softmax(2)
        labels = torch.randint(1, classes, (count, longest))
        _aligned(scores, labels, [steps] * count, [longest - i % (longest // 2) for i in range(count)])


def _lookups(dtype: torch.dtype) -> None:
    for tokens, words, width in (
        (32768, 71, 384),
        (16384, 256, 256),
        (8192, 100, 64),
        (768, 65, 128),
        (2048, 30522, 128),
    ):
        grad, indices = torch.randn(tokens, width, dtype=dtype), torch.randint(0, words, (tokens,))
        torch.ops.aten.embedding_dense_backward(grad, indices, words, -1, False)


def _losses(dtype: torch.dtype) -> None:
    for rows, classes in ((64, 10), (128, 1000), (1024, 1000), (512, 10), (32, 4096)):
        scores = torch.randn(rows, classes).log_softmax(1).to(dtype).requires_grad_()
        torch.nn.functional.nll_loss(scores, torch.randint(0, classes, (rows,))).backward()
    for batch, size in ((1, 28), (4, 64), (1, 224), (8, 224), (2, 512)):
        torch.affine_grid_generator(torch.randn(batch, 2, 3, dtype=dtype), [batch, 3, size, size], False)
    for rows, length, size, step in (
        (8, 1024, 16, 8),
        (64, 1024, 16, 8),
        (256, 4096, 32, 16),
        (4, 100, 4, 1),
        (32, 8192, 64, 64),
    ):
        grad = torch.randn(rows, (length - size) // step + 1, size, dtype=dtype)
        torch.ops.aten.unfold_backward(grad, [rows, length], 1, size, step)


def _searches(only: Sequence[str] = ()) -> list[tuple[str, list[str]]]:
    """Each operator with the words that say how it is searched; those of FIRST, then others. only: these."""
    words = {overload_of(p): ["--calls", str(len(load_recordings(SHIPPED, p.name)))] for p in SHIPPED.glob("*.jsonl")}
    words |= {overload: ["--no-llm"] for overload in SETTINGS}
    ranked = [*FIRST, *sorted(words.keys() - set(FIRST))]
    return [(overload, words[overload]) for overload in ranked if not only or overload in only]


def _tune(workspace: Path, overload: str, words: Sequence[str], seconds: float = SECONDS) -> tuple[str, str]:
    """What a search printed, on either stream."""
    command = [sys.executable, "-m", "enable", "--workspace", str(workspace), "tune", overload, "--trace", TRACE]
    begun = time.monotonic()
    try:
        done = subprocess.run(
            [*command, "--platform", "cuda", "--json", *words],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return "", f"ended after {seconds:.0f} s: {str(error.stderr or '')[-300:]}"
    print(
        f"{overload}  {time.monotonic() - begun:.0f} s  {_brief(done.stdout) or done.stderr.strip()[-200:]}", flush=True
    )
    return done.stdout, done.stderr


def _brief(text: str) -> str:
    if not text.startswith("{"):
        return ""
    found = json.loads(text)
    gain = found["gain"]
    return f"{found['exit']} {gain['mean']:.3f} of {found['why']}" if gain else f"{found['exit']} {found['why']}"


def judge(workspace: Path, at_once: int, only: Sequence[str]) -> None:
    """Have every candidate judged; what was searched is forgotten, the verdicts are kept."""
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda one: _tune(workspace, one[0], one[1], 3 * SECONDS), _searches(only)))
    _forget(workspace)


def _forget(workspace: Path) -> None:
    """Trees, accepted kernels and what was learned; not the verdicts."""
    for name in ("tune", "kernels"):
        shutil.rmtree(workspace / name, ignore_errors=True)
    (workspace / "skills.jsonl").unlink(missing_ok=True)


def search(workspace: Path, out: Path, only: Sequence[str]) -> None:
    """Run the campaign from the packaged kernels, and keep what it came to."""
    _forget(workspace)  # what a `judge` that was ended may have left
    out.mkdir(parents=True, exist_ok=True)
    for overload, words in _searches(only):
        printed, told = _tune(workspace, overload, words)
        (out / f"{slug(overload)}.json").write_text(printed)
        (out / f"{slug(overload)}.log").write_text(told)
        _keep(workspace, out)


def _keep(workspace: Path, out: Path) -> None:
    """Copy what the searches left so far: times and journals, not the prompts."""
    for path in (workspace / "tune").rglob("*.jsonl"):
        into = out / "tune" / path.relative_to(workspace / "tune")
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, into)
    if (workspace / "skills.jsonl").exists():
        shutil.copyfile(workspace / "skills.jsonl", out / "skills.jsonl")


def write(out: Path, page: Path) -> None:
    """Put the figures into the page, between its marks."""
    found = [json.loads(p.read_text()) for p in sorted(out.glob("aten.*.json")) if p.read_text().startswith("{")]
    text = page.read_text(encoding="utf-8")
    head, tail = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    page.write_text(f"{head}\n{_device(out)}\n{_table(found)}\n{_skills(out, found)}{tail}", encoding="utf-8")


def _device(out: Path) -> str:
    lines = [
        line for path in sorted((out / "tune").glob("*.times.jsonl")) for line in path.read_text().splitlines()[1:]
    ]
    devices = [json.loads(line)["measured"]["device"] for line in lines]
    if not devices:
        return ""
    beside, device = [d["beside"] for d in devices], devices[0]
    others = "an unknown number of" if None in beside else " to ".join(map(str, sorted({min(beside), max(beside)})))
    moved, launch = device["bandwidth"] / 1e6, device["launch"]
    told = f"One {device['name']}, with {others} other processes on it while times were taken"
    return f"{told}: a copy moves {moved:.2f} TB/s, a launch takes {launch:.1f} us.\n"


def _table(found: Sequence[dict[str, Any]]) -> str:
    lines = [
        "| operator | how | shapes | candidates | calls | before us | after us | gain | noise | least gain | exit |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        gain = one["gain"] or {"mean": 1.0, "noise": 1.0, "shapes": {"": 1.0}}
        calls = one["used"].get("calls", 0)
        how = "settings" if one["overload"] in SETTINGS else "tree"
        times = [f"{one[name]:.1f}" if one[name] else "-" for name in ("before_us", "after_us")]
        least, noise = min(gain["shapes"].values()), gain["noise"] - 1
        cells = [one["overload"], how, one["shapes"], one["candidates"], calls or "-", *times]
        cells += [f"{gain['mean']:.3f}", f"{noise:.1%}", f"{least:.3f}", one["exit"].lower().replace("_", " ")]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def _skills(out: Path, found: Sequence[dict[str, Any]]) -> str:
    path, accepted = out / "skills.jsonl", {one["overload"] for one in found if one["exit"] == "ACCEPTED"}
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]] if path.exists() else []
    told = [f"- {skill['overload']}: {skill['text']}" for skill in lines if skill["overload"] in accepted]
    return "\n".join(["Skills that were kept:\n", *told, "\n"]) if told else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("record", "judge", "search", "write"))
    parser.add_argument("place", type=Path, help="The workspace; of `write`, what `search` left.")
    parser.add_argument("into", type=Path, nargs="?", help="Where `search` leaves it; of `write`, the page.")
    parser.add_argument("--at-once", type=int, default=5, help="Operators that are judged at once.")
    parser.add_argument("--only", action="append", default=[], metavar="OVERLOAD", help="This one; may be repeated.")
    asked = parser.parse_args()
    if asked.what in ("search", "write") and asked.into is None:
        parser.error(f"{asked.what} takes two places")
    match asked.what:
        case "record":
            record(asked.place)
        case "judge":
            judge(asked.place, asked.at_once, asked.only)
        case "search":
            search(asked.place, asked.into, asked.only)
        case _:
            write(asked.place, asked.into)


if __name__ == "__main__":
    main()
