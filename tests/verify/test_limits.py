"""Each limit that a platform's file states refuses a kernel beyond it by name, and leaves one within it alone."""

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

from generate import BLOCKS, prompts
from traces import UserError
from verify import platforms
from verify.cases.case import case_of_values
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.job import Job
from verify.judging.judge import Judge
from verify.judging.verdicts import VerdictStore
from verify.limits import ChipLimits
from verify.outcome import Outcome

ROOT = Path(__file__).parents[2]
LIMITED = """\
base: sim
targets:
  - {backend: cuda, arch: 90, warp_size: 32, shared_bytes: 8192}
limits:
  grid: [4, 2]
  block_elements: 4096
  num_warps: [1, 2, 4]
  num_stages: [1, 2]
  functions:
    tl.exp: [float32]
    tl.where: [float32, int32, int64]
    tl.sort: [int32]
    tl.zeros: [float16, bfloat16, float32]
    tl.atomic_add: [int32]
    tl.cast: [float16, bfloat16, float32, int32, int64]
  dot_dtypes: [float16, float32]
  dot_smallest: [32, 32, 16]
  dot_largest: [64, 64, 64]
  dot_precision: tf32
  flush_denormals: true
"""

KERNEL = '''\
"""aten::{overload}(Tensor self) -> Tensor

One statement and one launch vary.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::{overload}",)
DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int64")


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    program = tl.program_id(0) + 4 * (tl.program_id(1) + 2 * tl.program_id(2))
    i = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    {statement}
    tl.store(out_ptr + i, y, mask=i < n)


def wrapper(self):
    out = torch.empty_like(self)
    kernel[{grid}](self, out, self.numel(), BLOCK={block}{options})
    return out
'''

MM = '''\
"""aten::mm(Tensor self, Tensor mat2) -> Tensor

One block, in one of several precisions.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::mm",)
DTYPES = ("float32",)


@triton.jit
def kernel(a_ptr, b_ptr, out_ptr):
    i = tl.arange(0, 32)
    at = i[:, None] * 32 + i[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))


def wrapper(self, mat2):
    out = torch.empty_like(self)
    kernel[(1,)](self, mat2, out)
    return out
'''

ADD = "tl.store(out_ptr + i, 0 * x, mask=i < n); tl.debug_barrier(); tl.atomic_add(out_ptr + i, -x, mask=i < n); y = -x"


def text(statement="y = -x", grid="(1,)", block=64, options="", overload="neg"):
    return KERNEL.format(statement=statement, grid=grid, block=block, options=options, overload=overload)


def added(term, **launch):
    """A kernel that adds 0 times a term to the answer."""
    return text(f"y = -x + 0 * {term}", **launch)


def dot(n=32, k=16, to="", **launch):
    """A kernel with a product of [BLOCK, k] and [k, n] blocks."""
    left, right = f"(x[:, None] + tl.zeros((1, {k}), x.dtype)){to}", f"tl.zeros(({k}, {n}), x.dtype){to}"
    return added(f"tl.sum(tl.dot({left}, {right}), 1)", **launch)


@pytest.fixture(scope="module")
def chip(tmp_path_factory):
    path = tmp_path_factory.mktemp("chip") / "mychip.yaml"
    path.write_text(LIMITED)
    return platforms.load(str(path))


@pytest.fixture(scope="module")
def judge(chip, tmp_path_factory):
    with Judge(chip, VerdictStore(tmp_path_factory.mktemp("store") / "verdicts.sqlite"), workers=2) as judge:
        yield judge


def job(source, overload="neg", **arguments):
    kernel = KernelFile.parse(source, Path(f"{overload}.py"), (BLOCKS,))
    case = case_of_values(f"aten::{overload}", **arguments)
    return Job(Plan(f"aten::{overload}", f"aten::{overload}"), kernel, (case,), dialect="")


def verdict(judge, source, overload="neg", **arguments):
    (answer,) = judge.judge([job(source, overload, **arguments)]).values()
    return answer


ROWS = torch.arange(1, 65)
SQUARE = "x[:, None] * x[None, :]"
PRODUCT = {"self": torch.rand(32, 32, generator=torch.Generator().manual_seed(0)) - 0.5, "mat2": torch.eye(32) / 3}
IEEE = MM.replace("tl.load(b_ptr + at))", "tl.load(b_ptr + at), input_precision='ieee')")

PROMPTED = [
    "A grid has 2 dimensions with at most 4 x 2 programs.",
    "A block has at most 4096 elements, and so has every intermediate result.",
    "A launch that states num_warps states 1, 2 or 4.",
    "A launch that states num_stages states 1 or 2.",
    "tl.exp takes only float32.",
    "tl.where takes only float32, int32 or int64.",
    "tl.sort takes only int32.",
    "tl.zeros takes only float16, bfloat16 or float32.",
    "tl.atomic_add takes only int32.",
    "tl.cast takes only float16, bfloat16, float32, int32 or int64.",
    "tl.dot takes only float16 or float32.",
    "tl.dot takes blocks [M, K] and [K, N] with at least M=32, N=32 and K=16.",
    "tl.dot takes blocks [M, K] and [K, N] with at most M=64, N=64 and K=64.",
    "A tl.dot of float32 without input_precision computes in tf32.",
    "Denormal numbers of float32 and bfloat16 become 0: scale before a product can be as small, not after it.",
]
BEYOND = [
    (text(grid="(5,)"), "float32", "limit grid: kernel is launched with 5 programs; at most 4 x 2"),
    (text(grid="(1, 1, 2)"), "float32", "limit grid: kernel is launched with 1 x 1 x 2 programs; at most 4 x 2"),
    (text(block=8192), "float32", "limit block_elements: a block of 8192; at most 4096"),
    (added("tl.sum(x[:, None] + tl.zeros((1, 128), x.dtype), 1)"), "float32", "limit block_elements: a block of 8192"),
    (text(options=", num_warps=8"), "float32", "limit num_warps: kernel is launched with 8; choose from 1, 2, 4"),
    (text(options=", num_stages=3"), "float32", "limit num_stages: kernel is launched with 3; choose from 1, 2"),
    (added(f"tl.sum(tl.dot({SQUARE}, {SQUARE}), 1)"), "float32", "bytes of shared memory; cuda:90 has 8192"),
    (added("tl.exp(-x)"), "float64", "limit functions: tl.exp of float64; choose from float32"),
    (added("(-x).exp()"), "float64", "limit functions: tl.exp of float64"),
    (added("tl.sigmoid(x)"), "float64", "limit functions: tl.exp of float64"),
    (added("tl.sort(x)"), "int64", "limit functions: tl.sort of int64; choose from int32"),
    (text("y = tl.where(x > 3, -x, 0 - x)"), "float64", "limit functions: tl.where of float64"),
    (text("y = (-x).to(tl.float32)"), "float64", "limit functions: tl.cast of float64"),
    (added("tl.zeros((BLOCK,), x.dtype)"), "float64", "limit functions: tl.zeros of float64"),
    (text(ADD), "float32", "limit functions: tl.atomic_add of float32; choose from int32"),
    (dot(to=".to(tl.bfloat16)"), "float32", "limit dot_dtypes: tl.dot of bfloat16; choose from float16, float32"),
    (dot(n=16), "float32", "limit dot_smallest: tl.dot with M=64, N=16, K=16; at least M=32, N=32, K=16"),
    (dot(k=128, block=32), "float32", "limit dot_largest: tl.dot with M=32, N=32, K=128; at most M=64, N=64, K=64"),
]
WITHIN = [
    (text(grid="(4,)"), "float32"),
    (text(grid="(1, 2, 1)"), "float32"),
    (text(block=4096), "float32"),
    (added("tl.sum(x[:, None] + tl.zeros((1, 64), x.dtype), 1)"), "float32"),
    (text(options=", num_warps=2, num_stages=2"), "float32"),
    (added("tl.exp(-x)"), "float32"),
    (added("tl.sort(x)"), "int32"),
    (text("y = tl.where(x > 3, -x, 0 - x)"), "int32"),
    (text(ADD), "int32"),
    (dot(to=".to(tl.float16)"), "float32"),
    (dot(n=64, k=32), "float32"),
]


@pytest.mark.parametrize("source, dtype, reason", BEYOND)
def test_a_kernel_beyond_a_limit_does_not_compile(judge, source, dtype, reason):
    answer = verdict(judge, source, self=ROWS.to(getattr(torch, dtype)))
    assert (answer.outcome, answer.layer) == (Outcome.COMPILE_ERROR, "compile")
    assert reason in answer.detail


@pytest.mark.parametrize("source, dtype", WITHIN)
def test_a_kernel_within_the_limits_passes(judge, source, dtype):
    assert verdict(judge, source, self=ROWS.to(getattr(torch, dtype))).outcome is Outcome.PASS


def test_a_limit_is_reported_with_the_line_of_the_kernel(judge):
    """It is also the line of the kernel if Triton's own library goes beyond the limit, as in tl.sigmoid."""
    for term in ("tl.exp(-x)", "tl.sigmoid(x)"):
        detail = verdict(judge, added(term), self=ROWS.double()).detail
        line = KERNEL.split("{statement}")[0].count("\n") + 1
        assert detail.startswith(f"CompilationError: at line {line}, column 17: beyond the chip's limit functions")


UNDERFLOW = "y = -(x * 7.888609052210118e-31 * 9.313225746154785e-10 * 1.2676506002282294e+30 * 1073741824.0)"  # 2^-130
TERMS = "tl.where(i == 0, 1.7632415262334313e-38, tl.where(i == 1, -1.1754943508222875e-38, 0.0))"  # in all 2^-127
SUM = f"y = x - 4 * (8.507059173023462e+37 * tl.sum(x * {TERMS}))"
ONES = torch.ones(64)
# overload, kernel, argument, and outcomes on a chip that flushes denormals and multiplies in TF32, and without limits
NUMBERS = {
    "lost on the way": ("neg", text(UNDERFLOW), {"self": ONES}, Outcome.WRONG, Outcome.PASS),
    "lost in bfloat16": ("neg", text(UNDERFLOW), {"self": ONES.bfloat16()}, Outcome.WRONG, Outcome.PASS),
    "lost in a sum": ("neg", text(SUM), {"self": ONES}, Outcome.WRONG, Outcome.PASS),
    "not denormal": ("neg", text("y = -(x * 1e-30 * 1e30)"), {"self": ONES}, Outcome.PASS, Outcome.PASS),
    "denormal result": (
        *("exp", text("y = tl.exp(x)", overload="exp"), {"self": ONES * -90}),
        *(Outcome.PASS, Outcome.PASS),
    ),
    "flushed result": (
        *("exp", text("y = tl.where(x < -89, 0.0, tl.exp(x))", overload="exp"), {"self": ONES * -90}),
        *(Outcome.PASS, Outcome.WRONG),
    ),
    "lost normal result": (
        *("exp", text("y = tl.where(x < -86, 0.0, tl.exp(x))", overload="exp"), {"self": ONES * -87}),
        *(Outcome.WRONG, Outcome.WRONG),
    ),
    "denormal argument": (
        *("log", text("y = tl.log(x)", overload="log"), {"self": ONES * 1e-40}),
        *(Outcome.PASS, Outcome.PASS),
    ),
    "denormal argument in bfloat16": (
        *("log", text("y = tl.log(x.to(tl.float32))", overload="log"), {"self": (ONES * 1e-40).bfloat16()}),
        *(Outcome.PASS, Outcome.PASS),
    ),
    "sign of a zero": ("neg", text("y = 0 - x"), {"self": ONES * 0}, Outcome.WRONG, Outcome.WRONG),
    "product in tf32": ("mm", MM, PRODUCT, Outcome.WRONG, Outcome.PASS),
    "product in float32": ("mm", IEEE, PRODUCT, Outcome.PASS, Outcome.PASS),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_those_of_the_chip(judge, name):
    overload, source, arguments, outcome, _ = NUMBERS[name]
    assert verdict(judge, source, overload, **arguments).outcome is outcome


@pytest.mark.parametrize("backend, product", [("cuda", Outcome.WRONG), ("hip", Outcome.PASS)])
def test_numbers_without_limits_are_those_of_the_target(tmp_path, backend, product):
    """NVIDIA's GPUs read the operands of a product of float32 as TF32, unless it asks for more."""
    path = tmp_path / "mychip.yaml"
    targets = {
        "cuda": "{backend: cuda, arch: 90, warp_size: 32, shared_bytes: 232448}",
        "hip": "{backend: hip, arch: gfx942, warp_size: 64, shared_bytes: 65536}",
    }
    path.write_text(f"base: sim\ntargets:\n  - {targets[backend]}\n")
    with Judge(platforms.load(str(path)), VerdictStore(tmp_path / "verdicts.sqlite"), workers=2) as judge:
        outcomes = {name: verdict(judge, row[1], row[0], **row[2]).outcome for name, row in NUMBERS.items()}
    assert outcomes == {name: row[-1] for name, row in NUMBERS.items()} | {"product in tf32": product}


def test_a_binary_from_before_a_limit_does_not_hide_it(tmp_path):
    outcomes = []
    for limits in ("", "limits: {block_elements: 32}\n"):
        path = tmp_path / "mychip.yaml"
        path.write_text(LIMITED.partition("limits:")[0] + limits)
        store = VerdictStore(tmp_path / "verdicts.sqlite")
        with Judge(platforms.load(str(path)), store, workers=1, cache=tmp_path / "cache") as judge:
            outcomes.append(verdict(judge, text(), self=ROWS.float()).outcome)
    assert outcomes == [Outcome.PASS, Outcome.COMPILE_ERROR]


def test_limits_are_inherited_one_by_one(tmp_path):
    (tmp_path / "first.yaml").write_text(LIMITED)
    path = tmp_path / "second.yaml"
    path.write_text("base: ./first.yaml\nlimits: {grid: [7], flush_denormals: false}\n")
    first, second = (platforms.load(str(tmp_path / f"{name}.yaml")) for name in ("first", "second"))
    assert second.limits.stated() | {"flush_denormals": True} == first.limits.stated() | {"grid": (7,)}
    assert second.sha256 != first.sha256 and not platforms.load("sim").limits.stated()


def test_the_documented_limits_are_limits(tmp_path):
    pages = [ROOT / "docs" / "platforms" / name for name in ("platform-file.md", "README.md")]
    path = tmp_path / "mychip.yaml"
    path.write_text("base: sim\n" + re.search(r"```yaml\n(limits:\n.*?)```", pages[0].read_text(), re.S)[1])
    assert platforms.load(str(path)).limits.block_elements == 16384
    rows = pages[1].read_text().partition("| `limits` | meaning |")[2]
    assert all(f"`{field.name}`" in rows for field in fields(ChipLimits))


def test_the_prompt_has_a_line_for_each_limit(chip):
    section = prompts.chip(chip)
    for line in PROMPTED:
        assert f"- {line}\n" in section
    stated = replace(chip, limits=ChipLimits())
    launching = sum(line.startswith("- Do not launch with the blocks ") for line in section.splitlines())
    assert len(section.splitlines()) == len(prompts.chip(stated).splitlines()) + len(PROMPTED) + launching


@pytest.mark.parametrize(
    "change, line, reason",
    [
        (("grid: [4, 2]", "grid: [4, 2, 1, 1]"), 5, "limits.grid: List should have at most 3 items"),
        (("grid: [4, 2]", "gird: [4, 2]"), 5, "unknown field limits.gird; do you mean grid?"),
        (("block_elements: 4096", "block_elements: 0"), 6, "limits.block_elements: Input should be greater than 0"),
        (("[1, 2, 4]", "[1, 3]"), 7, "has to be a power of two"),
        (("num_stages: [1, 2]", "num_stages: []"), 8, "limits.num_stages: List should have at least 1 item"),
        (
            ("tl.exp: [float32]", "tl.exq: [float32]"),
            10,
            "limits.functions.tl.exq: unknown function, did you mean tl.exp",
        ),
        (("tl.exp: [float32]", "tl.constexpr: [float32]"), 10, "? choose from tl.abs, "),
        (("tl.exp: [float32]", "tl.exp: [fp32]"), 10, "limits.functions.tl.exp.0: Input should be 'bool', "),
        (("dot_dtypes: [float16", "dot_dtypes: [float15"), 16, "limits.dot_dtypes.0: Input should be 'bool', "),
        (("dot_smallest: [32, 32", "dot_smallest: [32"), 17, "limits.dot_smallest: List should have at least 3 items"),
        (("dot_smallest: [32, 32", "dot_smallest: [32, 128"), 4, "dot_smallest has a size above that of dot_largest"),
        (("dot_precision: tf32", "dot_precision: tf33"), 19, "Input should be 'ieee', 'tf32', 'tf32x3'"),
        (("flush_denormals: true", "flush_denormals: 1"), 20, "Input should be a valid boolean"),
    ],
)
def test_an_impossible_limit_is_reported_with_its_line_and_the_choices(tmp_path, change, line, reason):
    assert LIMITED.count(change[0]) == 1
    path = tmp_path / "mychip.yaml"
    path.write_text(LIMITED.replace(*change))
    with pytest.raises(UserError) as error:
        platforms.load(str(path))
    assert str(error.value).startswith(f"{path}:{line}: ") and reason in str(error.value)
