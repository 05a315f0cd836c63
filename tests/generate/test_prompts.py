"""The prompts are golden-tested. After a wanted change: UPDATE_GOLDENS=1 pytest tests/generate/test_prompts.py"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from generate.machine import State
from generate.prompts import cut_middle, feedback, opening, summary_request, system
from generate.signatures import describe
from generate.task import Task
from traces.values import pack
from verify.outcome import UNREACHED, Outcome, Verdict

GOLDEN = Path(__file__).parent / "golden"
TASK = Task(
    overload="aten::gelu",
    schemas=("aten::gelu(Tensor self, *, str approximate='none') -> Tensor",),
    dtypes=("bfloat16", "float16", "float32"),
    path="generate/kernels/pointwise/gelu.py",
    docs="## documentation: torch.nn.functional.gelu\n\nGELU(x) = x * Phi(x)",
    cases=(
        "self: float32 [12, 64] stride [64, 1], approximate: 'tanh'",
        "self: float32 [] stride [], approximate: 'none'",
    ),
)
MEND = replace(
    TASK,
    cases=(),
    source="import torch\n",
    failing=Verdict("case 3", Outcome.WRONG, "wrong", "worst at [3]: 1.0, not 2.0"),
)
FAILED = State(outcome="WRONG", report="worst at [3]: 1.0, not 2.0", counts={"PASS": 3, "WRONG": 1}, source="x = 1\n")

TEXTS = {
    "system": lambda: system("triton"),
    "opening-new": lambda: opening(TASK, State())[1].content,
    "opening-mend": lambda: opening(MEND, State())[1].content,
    "opening-second-dialog": lambda: opening(TASK, FAILED)[1].content,
    "feedback-lint": lambda: feedback(State(outcome="LINT"), "[name] torch.exp ... (line 3) instead: tl.exp"),
    **{
        f"feedback-{o.lower()}": lambda o=o: feedback(replace(FAILED, outcome=o), "the report")
        for o in (*Outcome, UNREACHED)
        if o is not Outcome.PASS
    },
    "summarize": lambda: summary_request("the compiler's log", 1000)[0].content,
}


@pytest.mark.parametrize("name", TEXTS)
def test_golden(name):
    path = GOLDEN / f"{name}.md"
    text = TEXTS[name]()
    if os.environ.get("UPDATE_GOLDENS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_opening_has_the_rules_first():
    assert [m.role for m in opening(TASK, State())] == ["system", "user"]
    assert opening(TASK, State())[0].content == system("triton")


def test_long_reports_are_cut_in_the_middle():
    text = "a" * 500 + "b" * 500
    cut = cut_middle(text, 100)
    assert cut == "a" * 50 + "\n[... 900 characters left out ...]\n" + "b" * 50
    assert cut_middle(text, 1000) == text
    assert "left out" in feedback(FAILED, "x" * 100_000)


def test_signatures_show_everything_but_data():
    x = torch.arange(6.0).reshape(2, 3).t()
    packed = pack({"self": x, "dims": [0, 1], "scale": 0.5, "dtype": torch.float16, "w": None, "list": [x, x]})
    assert describe(packed) == (
        "self: float32 [3, 2] stride [1, 3], dims: [0, 1], scale: 0.5, dtype: dtype float16, w: None, "
        "list: [float32 [3, 2] stride [1, 3], float32 [3, 2] stride [1, 3]]"
    )


def test_a_task_is_the_same_task_whatever_its_path_and_command():
    assert replace(TASK, path="other.py", command="enable refine x").digest() == TASK.digest()
    assert len({TASK.digest(), MEND.digest(), replace(TASK, dtypes=()).digest()}) == 3


def test_an_operator_that_draws_is_told_where_from():
    drawing = replace(TASK, draws="law")
    assert "`philox`" in opening(drawing, State())[1].content
    assert "`philox`" in opening(replace(TASK, draws="fixed"), State())[1].content
    assert "philox" not in opening(TASK, State())[1].content


def test_an_operator_whose_result_is_sized_by_values_is_told_that_it_may_read_them():
    masked = replace(TASK, overload="aten::masked_select", sized_by_data=True)
    assert "read the count back with `.item()`" in opening(masked, State())[1].content
    assert ".item()" not in opening(TASK, State())[1].content


def test_a_model_is_told_of_one_language():
    text = system("triton-nvidia")
    assert "tl.make_tensor_descriptor" in text and "gluon" not in text and "hopper." not in text
