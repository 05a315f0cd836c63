"""Kernels of subgraphs before the judge: right ones, cheats, and a recorded dialog that ends in one."""

import json
from pathlib import Path

import pytest
import torch

from capture import Recorder
from enable.cover.verification import VerifyRequest
from enable.cover.verifier import Verifier
from enable.fuse.search import fuse
from enable.refine.refining import RefineChoice, refine
from enable.workspace import Workspace
from generate.llm import Options
from generate.machine import DialogLimits
from tests.dialogs.fused.record import record_attention
from traces.subgraphs import Subgraph, SubgraphCall, SubgraphInput
from verify import operators
from verify.outcome import Outcome

ROOT = Path(__file__).parents[2]
DIALOG = ROOT / "tests" / "dialogs" / "fused"
SIZES = ((16, 32), (8, 64), (5, 7), (33, 16), (12, 20), (3, 100))
NAME = "fused::mul_tanh_add_47c41133"

HEAD = f'''"""{NAME}(Tensor a0, Tensor a1, Tensor a2) -> (Tensor, Tensor)"""
import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("{NAME}",)
DTYPES = ("float32",)
'''
FUNCTIONS = """

@triton.jit
def tanh_of_product(x, w):
    p = x * w
    e = tl.exp(-2.0 * tl.abs(p))
    series = p * (1.0 - p * p * (1.0 / 3.0 - p * p * (2.0 / 15.0 - p * p * (17.0 / 315.0))))
    t = (1.0 - e) / (1.0 + e)
    t = tl.where(p < 0.0, -t, t)
    return tl.where(tl.abs(p) < 0.1, series, t)


@triton.jit
def added(x, w, y):
    return tanh_of_product(x, w) + y


def wrapper(a0, a1, a2):
"""
RIGHT = "    return elementwise(tanh_of_product, a0, a1), elementwise(added, a0, a1, a2)\n"
ONE_SHAPE = """

@triton.jit
def rows_of_32(x_ptr, w_ptr, y_ptr, tanh_ptr, sum_ptr):
    column = tl.arange(0, 32)
    at = tl.program_id(0) * 32 + column
    p = tl.load(x_ptr + at) * tl.load(w_ptr + column)
    t = 1.0 - 2.0 / (1.0 + tl.exp(2.0 * p))
    tl.store(tanh_ptr + at, t)
    tl.store(sum_ptr + at, t + tl.load(y_ptr + at))


def wrapper(a0, a1, a2):
    tanh, total = torch.empty_like(a0), torch.empty_like(a2)
    rows_of_32[(16,)](a0, a1, a2, tanh, total)
    return tanh, total
"""
BAD = {  # what the wrapper does instead, whether lint is asked, and what has to be said
    "one output for another": (
        "    one = elementwise(tanh_of_product, a0, a1)\n    return one, one\n",
        Outcome.WRONG,
        "must not share memory",
    ),
    "the first output twice": (
        "    return elementwise(tanh_of_product, a0, a1), elementwise(tanh_of_product, a0, a1)\n",
        Outcome.WRONG,
        "return[1]",
    ),
    "an operator in the wrapper": (
        "    one = elementwise(tanh_of_product, a0, a1)\n    return one, torch.add(one, a2)\n",
        Outcome.CHEAT,
        "aten::add.Tensor",
    ),
    "the subgraph itself": (
        f"    elementwise(added, a0, a1, a2)\n    return torch.ops.{NAME.replace('::', '.')}(a0, a1, a2)\n",
        Outcome.CHEAT,
        NAME,
    ),
    "an input left out": (
        "    one = elementwise(tanh_of_product, a0, a1)\n    return one, elementwise(added, a0, a1, one)\n",
        Outcome.WRONG,
        "return[1]",
    ),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """With a trace of the subgraph, and its fusion."""
    found = Workspace(tmp_path_factory.mktemp("fused") / "ws")
    found.traces.mkdir(parents=True)
    torch.manual_seed(0)
    kept = []
    with Recorder(found.trace_path("small"), dataflow=True):
        for n, m in SIZES:
            x, y, w = torch.randn(n, m), torch.randn(n, m), torch.randn(m)
            tanh = torch.tanh(x * w)
            kept += [tanh, tanh + y]
    assert [fusion.overload for fusion in fuse(found, "small")] == [NAME]
    return found


@pytest.fixture(scope="module")
def verifier(workspace):
    with Verifier(workspace.root, None, "sim", "triton-cuda", "full") as found:
        yield found


@pytest.fixture
def judged(verifier, tmp_path):
    def judge(text, **how):
        path = tmp_path / "kernel.py"
        path.write_text(text)
        return verifier.verify(str(path), None, VerifyRequest(seed=1, **how))

    return judge


def test_a_right_kernel_passes(judged):
    found = judged(HEAD + FUNCTIONS + RIGHT, limit=24)
    assert found.outcome is Outcome.PASS and found.passed >= len(SIZES) + 20, found.detail


@pytest.mark.parametrize("how", BAD)
def test_cheats_and_faults_are_refused(judged, how):
    body, outcome, told = BAD[how]
    without = frozenset({"lint"}) if outcome is Outcome.CHEAT else frozenset()
    found = judged(HEAD + FUNCTIONS + body, sources=("traces",), off=without)
    assert found.outcome is outcome and told in found.detail


def test_what_is_right_for_one_occurrence_alone_is_refused(judged):
    found = judged(HEAD + ONE_SHAPE, sources=("traces",))
    assert found.outcome is Outcome.WRONG and found.passed == 1


def test_a_launch_that_does_nothing_is_refused(judged):
    body = "    elementwise(added, a0, a1, a2)\n    return torch.zeros_like(a0), torch.zeros_like(a2)\n"
    found = judged(HEAD + FUNCTIONS + body, sources=("traces",), off=frozenset({"lint"}))
    assert found.outcome in (Outcome.WRONG, Outcome.CHEAT)


MATRIX = SubgraphInput("float32", (None, None))


def step(overload, **arguments):
    return SubgraphCall(overload, arguments)


def test_the_tolerance_is_that_of_the_steps():
    x = {"tensor": 0}
    cast = step("aten::_to_copy", self=x, dtype={"dtype": "bfloat16"})
    exp, relu = step("aten::exp", self={"tensor": 1}), step("aten::relu", self={"tensor": 1})
    names = [Subgraph((MATRIX,), (cast, each), (2,)).define()._schema.name for each in (exp, relu)]
    assert [operators.group(name) for name in names] == ["pointwise", "exact"]
    both = Subgraph((MATRIX,), (cast, exp, step("aten::sin", self={"tensor": 2})), (3,)).define()
    assert operators.group(both._schema.name) == "accumulate"
    assert operators.parts(both._schema.name) == ("aten::_to_copy", "aten::exp", "aten::sin")
    total = step("aten::sum.dim_IntList", self={"tensor": 1}, dim=[0], keepdim=False, dtype=None)
    gentle, steep = (step(f"aten::{name}", self={"tensor": 2}) for name in ("relu", "exp"))
    sums = [Subgraph((MATRIX,), (cast, total, each), (3,)).define()._schema.name for each in (gentle, steep)]
    assert list(map(operators.adds_up, sums)) == [True, False]


@pytest.mark.timeout(300)
def test_a_recorded_dialog_ends_in_a_kernel(tmp_path):
    """Attention in parts, which is composed of no scalar functions."""
    found = Workspace(tmp_path / "ws")
    record_attention(found.trace_path("small"))
    fusion, rest = fuse(found, "small")  # and what can be composed of it
    assert (fusion.kind, rest.kind) == ("attention", "reduction")
    choice = RefineChoice("small", fusion.overload, False, "replay", Options(recordings=DIALOG), DialogLimits(), ())
    (row,) = refine(found, None, "sim", choice)
    assert row["exit"] == "PASSED" and row["calls"] == 3, row["detail"]
    answers = [json.loads(line) for line in (DIALOG / "bmm_mul_softmax_bmm_caf4ebf8.jsonl").read_text().splitlines()]
    last = [message["content"] for message in answers if message.get("role") == "assistant"][-1]
    assert Path(row["kernel"]).read_text().strip() in last
    match = found.library(None).match(fusion.overload)
    assert match is not None and match.refined
