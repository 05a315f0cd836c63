"""Mutants of kernels: each class changes what it says, a wrong mutant is killed, and an equivalent one is sifted."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.kernel_mutants import drawing
from benchmarks.kernel_mutants.changes import CLASSES
from benchmarks.kernel_mutants.drawing import Mutant, applied, described, draw
from benchmarks.kernel_mutants.judging import EQUIVALENT, KILLED, UNREACHED, MutantJudge, Settings
from benchmarks.kernel_mutants.program import Program, kernel_files, linked
from benchmarks.kernel_mutants.report import read_records, table, with_reasons
from enable.workspace import Workspace

HEAD = """import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::neg",)
DTYPES = ("float32",)
"""
KERNEL = (
    HEAD
    + """

@triton.jit
def negated(x_ptr, out_ptr, n, x_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    unused = (i < n) & (i >= 0)
    x = tl.load(x_ptr + i * x_stride, mask=i < n, other=0)
    tl.debug_barrier()
    total = tl.cumsum(tl.where(unused, x, 2.5).to(tl.float32), 0)
    tl.atomic_add(out_ptr, total, mask=i < n)
    for k in range(0, n, BLOCK):
        total = tl.maximum(total, float("-inf"))
    tl.store(out_ptr + i * out_stride, -x, mask=i < n)


def wrapper(self):
    x = self.contiguous()
    out = torch.empty_like(x)
    BLOCK = 256
    if x.numel() and x.dim() != 9:
        grid = (triton.cdiv(x.numel(), BLOCK),)
        negated[grid](x, out, x.numel(), x.stride(0), 1, BLOCK=BLOCK, num_warps=4)
    return out
"""
)
EXPECTED = {
    "operators": (
        "i < n -> (i <= n)",
        "tl.program_id(0) * BLOCK -> (tl.program_id(0) // BLOCK)",
        "tl.maximum -> tl.minimum",
        "x.numel() and x.dim() != 9 -> (x.numel() or (x.dim() != 9))",
    ),
    "constants": ('float("-inf") -> 0.0', "2.5 -> 2.5025", "9 -> 10", "9 -> 8", "0 -> 1"),
    "masks": (
        "tl.load(x_ptr + i * x_stride, mask=i < n, other=0) -> tl.load(x_ptr + i * x_stride)",
        "(i < n) & (i >= 0) -> (i >= 0)",
        "0 -> 1",
    ),
    "dtypes": (
        "tl.where(unused, x, 2.5).to(tl.float32) -> tl.where(unused, x, 2.5)",
        "tl.float32 -> tl.float16",
    ),
    "barriers": (
        "tl.debug_barrier() -> pass",
        "tl.atomic_add(out_ptr, total, mask=i < n) -> "
        "tl.store(out_ptr, tl.load(out_ptr, mask=i < n) + (total), mask=i < n)",
    ),
    "strides": (
        "x_stride -> out_stride",
        "x_stride -> 1",
        "x.stride(0) -> x.stride(0 - 1)",
        "self.contiguous() -> self",
    ),
    "orders": ("x, 2.5 -> 2.5, x", "n -> n - (BLOCK)", "0 -> 0 + (BLOCK)"),
}
SETTINGS = ("256 -> 257", "4 -> 5", "4 -> 3")


def changes(kind):
    program = Program(KERNEL)
    every = [c for function in program.functions for c in CLASSES[kind](program, function)]
    return [described(program, change) for change in every if applied(program, change) is not None]


@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_a_class_makes_its_changes(kind):
    offered = changes(kind)
    assert [change for change in EXPECTED[kind] if change not in offered] == []
    assert not {*SETTINGS} & {*offered}


def test_statements_are_swapped_only_if_both_orders_are_programs():
    swapped = [change for change in changes("orders") if "debug_barrier" in change]
    assert swapped == []  # the barrier has no other effect beside it: a load before it may move
    assert any("atomic_add" in change or "cumsum" in change for change in changes("orders"))


def test_parentheses_around_an_operand_are_kept():
    program = Program("def wrapper(x):\n    return 16 * (x and 3) - (x << 2)\n")
    every = [described(program, c) for f in program.functions for c in CLASSES["operators"](program, f)]
    assert "16 * (x and 3) - (x << 2) -> ((16 * (x and 3)) + (x << 2))" in every
    assert "16 * (x and 3) -> (16 // (x and 3))" in every


def test_a_number_determines_the_mutant():
    files = kernel_files()[::100]
    assert draw(3, 7, files) == draw(3, 7, files)
    mutants = [draw(3, number, files) for number in range(6)]
    assert len({mutant.text for mutant in mutants}) > 4
    assert all(mutant.text != drawing.read(Path(mutant.file)).text for mutant in mutants)


def test_the_table_counts_states_and_reasons(tmp_path):
    base = {"kind": "masks", "file": "scan/a.py", "origin": "blocks/scan.py:7", "function": "f", "seconds": 1.0}
    base |= {"outcome": "WRONG", "layer": "compare"}
    states = ["killed", "killed", "killed", "survived", "survived", "equivalent", "stillborn", "undecided"]
    records = [{**base, "number": n, "change": str(n), "state": state} for n, state in enumerate(states)]
    out, reasons = tmp_path / "records.jsonl", tmp_path / "reasons.toml"
    lines = [json.dumps(record) for record in (*records, {**records[0], "number": 8})]
    out.write_text("\n".join([*lines, '{"number": 9, "ki']))
    entry = '[[equivalent]]\nmodule = "blocks/scan.py"\nfunction = "f"\nchange = "4"\nreason = "test"\n'
    reasons.write_text(entry)
    kept = with_reasons(read_records(out), reasons)
    assert len(kept) == 8  # number 8 is mutant 0 again
    text = table(read_records(out), reasons)
    assert "| masks | 8 | 7 | 1 | 3 | 1 | 0 | 1 | 1 | 1 | 0 | 75.0 % |" in text
    assert "score if all had survived: 60.0 %" in text
    assert "3 masks scan/a.py blocks/scan.py:7 f: 3" in text


def test_a_wrong_mutant_is_killed_and_an_equivalent_one_is_sifted(tmp_path):
    path = next(path for path in kernel_files() if path.stem == "triu_indices")
    text = linked(path)
    judge = MutantJudge(Settings(1, "sim", 60, (path,), tuple(CLASSES), limit=4), Workspace(tmp_path / ".enable"))
    wrong = Mutant(
        *(0, str(path), "operators", "", "upper_place", True, ""),
        text.replace("columns - longest + row", "columns + row"),
    )
    same = replace(wrong, is_device=False, text=text.replace("TENSORS_PER_LAUNCH = 32", "TENSORS_PER_LAUNCH = 31"))
    assert text not in (wrong.text, same.text)
    try:
        assert judge.judged(wrong)["state"] == KILLED
        assert judge.judged(same)["state"] in (EQUIVALENT, UNREACHED)
    finally:
        judge.close()
