"""A platform's blocks may replace functions of Triton's language."""

import math
from pathlib import Path

import pytest
import torch

from generate import BLOCKS
from generate.kernel_library import KERNELS, Library
from traces import UserError
from verify import platforms
from verify.cases.case import case_of_values
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.job import Job
from verify.judging.judge import Judge
from verify.judging.verdicts import VerdictStore
from verify.linking import link, written
from verify.lint import load_profile
from verify.lint.profile import DIRECTORY
from verify.outcome import Outcome

WITHOUT_ERF = (DIRECTORY / "without_erf", BLOCKS)
SOURCE = '''\
import triton
import triton.language as tl


@triton.jit
def halves(x):
    """Not tl.erf."""
    return 0.5 * tl.erf(x) + 0.5 * tl.math.erf(x) if "é" != "tl.erf" else tl.erf(x)  # tl.erf
'''


def test_names_are_replaced_in_code_alone():
    linked = link(SOURCE, WITHOUT_ERF)
    line = linked.split("\n")[7]
    assert line == '    return 0.5 * tl_erf(x) + 0.5 * tl_erf(x) if "é" != "tl.erf" else tl_erf(x)  # tl.erf'
    assert '"""Not tl.erf."""' in linked and "def tl_erf(x):" in linked and "def scaled_erfc(" in linked
    at = linked[: linked.index("def tl_erf")].count("\n") + 1
    assert written(linked, at)[0] == "blocks/language.py"
    assert link(SOURCE, (BLOCKS,)) == SOURCE


def test_blocks_are_replaced_too_and_the_key_changes(tmp_path):
    files = [KERNELS / f"{name}.py" for name in ("pointwise/gelu", "special/erfc", "pointwise/exp")]
    usual, own = ([KernelFile.read(f, blocks) for f in files] for blocks in ((BLOCKS,), WITHOUT_ERF))
    assert "tl.erf(" in usual[1].source and not any("tl.erf(" in kernel.source for kernel in own)
    assert [a.key == b.key for a, b in zip(usual, own, strict=True)] == [False, False, True]


def test_a_constant_is_replaced(tmp_path):
    (tmp_path / "language.py").write_text("import triton.language as tl\n\ntl_float64 = tl.constexpr(tl.float32)\n")
    linked = link("import triton.language as tl\n\n\ndef f(x):\n    return x.to(tl.float64)\n", (tmp_path, BLOCKS))
    assert "x.to(tl_float64)" in linked and "tl_float64 = tl.constexpr(tl.float32)" in linked


def test_a_replacement_may_use_the_original(tmp_path):
    text = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef tl_exp(x):\n"
    text += "    return tl.exp(tl.minimum(x, 88))\n"
    (tmp_path / "language.py").write_text(text)
    linked = link("import triton.language as tl\n\n\ndef f(x):\n    return tl.exp(x)\n", (tmp_path, BLOCKS))
    assert "return tl_exp(x)" in linked and "return tl.exp(tl.minimum(x, 88))" in linked


def test_every_kernel_without_erf_computes_it(tmp_path):
    """Values of each branch of the replacement, in both of its dtypes; tolerances are those of every kernel."""
    path = tmp_path / "mychip.yaml"
    path.write_text(
        "base: sim\nlint:\n  base: triton\n  blocks: [without_erf]\n"
        "  remove:\n    kernel: {names: [tl.erf, tl.math.erf]}\n"
    )
    platform = platforms.load(str(path))
    assert load_profile(platform.lint).blocks == WITHOUT_ERF[:1]
    ends = [0.0, -0.0, 1e-30, 1e-40, 0.5, -0.5, 30.0, float("inf"), -float("inf"), float("nan")]
    x = torch.cat([torch.tensor(ends, dtype=torch.float64), torch.linspace(-6, 6, 2001, dtype=torch.float64)])
    jobs = []
    for name in ("erf", "gelu"):
        kernel = KernelFile.read(KERNELS / "pointwise" / f"{name}.py", WITHOUT_ERF)
        cases = tuple(case_of_values(f"aten::{name}", self=x.to(dtype)) for dtype in (torch.float32, torch.float64))
        jobs.append(Job(Plan(f"aten::{name}", f"aten::{name}"), kernel, cases, dialect=""))
    with Judge(platform, VerdictStore(tmp_path / "verdicts.sqlite"), workers=1) as judge:
        verdicts = judge.judge(jobs)
    assert len(verdicts) == 4 and all(v.outcome is Outcome.PASS for v in verdicts.values()), verdicts


ATOMICS = ", ".join(f"tl.atomic_{name}" for name in ("add", "max", "min", "and", "or", "xor", "xchg", "cas"))
SORTING = '''\
"""aten::msort(Tensor self) -> Tensor"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::msort",)
DTYPES = ("float32", "int64")


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=float("nan") if x_ptr.dtype.element_ty.is_floating() else 1 << 62)
    tl.store(out_ptr + i, tl.sort(tl.reshape(x, [1, BLOCK])).reshape([BLOCK]), mask=i < n)


def wrapper(self):
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    kernel[(1,)](self, out, self.shape[0], BLOCK=triton.next_power_of_2(self.shape[0]))
    return out
'''
COUNTING = '''\
"""aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::bincount",)
DTYPES = ("int64",)


@triton.jit
def kernel(x_ptr, out_ptr, n, bins, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i, bin = tl.arange(0, BLOCK), tl.arange(0, BINS)
    x = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.int32)
    tl.store(out_ptr + bin, tl.histogram(x, BINS, i < n).to(tl.int64), mask=bin < bins)


def wrapper(self, weights=None, minlength=0):
    out = torch.empty(minlength, dtype=torch.int64, device=self.device)
    kernel[(1,)](self, out, self.shape[0], minlength, BLOCK=triton.next_power_of_2(self.shape[0]), BINS=16)
    return out
'''


def judged(directory, blocks, missing, jobs):
    """Verdicts of jobs, made with a library on a chip without these names but with these blocks."""
    path = directory / "mychip.yaml"
    path.write_text(
        f"base: sim\nlint:\n  base: triton\n  blocks: [{blocks}]\n  remove:\n    kernel: {{names: [{missing}]}}\n"
    )
    platform = platforms.load(str(path))
    library = Library(KERNELS, blocks=load_profile(platform.lint).blocks)
    with Judge(platform, VerdictStore(directory / "verdicts.sqlite"), workers=2) as judge:
        return judge.judge(jobs(library))


def test_combinations_of_values_without_atomics(tmp_path):
    """Values for one element, within a tile and from several; each way to combine them, and the dtypes that differ."""
    torch.manual_seed(3)
    x, index, values = torch.randn(5, 7), torch.randint(5, (150,)), torch.randn(150, 7)
    along = torch.randint(5, (150, 7))
    sparse = torch.sparse_coo_tensor(torch.randint(5, (1, 150)), values, (5, 7))
    bags = {
        "grad": torch.randn(4, 7), "indices": index, "offset2bag": torch.arange(150) // 40, "num_weights": 5,
        "bag_size": torch.tensor([40, 40, 40, 30]), "maximum_indices": torch.randint(5, (4, 7)),
        "scale_grad_by_freq": True, "mode": 0, "per_sample_weights": None, "padding_idx": 1,
    }  # fmt: skip
    cases = [
        case_of_values("aten::index_add", self=x, dim=0, index=index, source=values, alpha=0.5),
        case_of_values("aten::index_add", self=x.half().T, dim=1, index=index, source=values.half().T, alpha=1),
        case_of_values("aten::index_put", self=x, indices=[index, None], values=values, accumulate=True),
        case_of_values("aten::index_copy", self=x, dim=0, index=index, source=values),
        *(
            case_of_values("aten::scatter_reduce.two", self=y, dim=0, index=along, src=z, reduce=how)
            for how in ("amax", "amin", "prod", "mean")
            for y, z in ((x, values), ((x * 3).long(), (values * 3).long()))
        ),
        *(case_of_values("aten::add.Tensor", self=y, other=sparse.to(y.dtype), alpha=2) for y in (x, (x * 3).int())),
        *(
            case_of_values(
                "aten::_embedding_bag_dense_backward", **bags | {"mode": mode, "scale_grad_by_freq": mode == 0}
            )
            for mode in (0, 1, 2)
        ),
    ]  # fmt: skip

    def jobs(library):
        matches = [(library.match(case.overload), case) for case in cases]
        return [Job(match.plan, match.kernel, (case,), match.copy, dialect="") for match, case in matches]

    verdicts = judged(tmp_path, "without_atomics", ATOMICS, jobs)
    assert len(verdicts) == len(cases) and all(v.outcome is Outcome.PASS for v in verdicts.values()), verdicts
    usual = judged(tmp_path, "without_erf", ATOMICS, jobs)
    lost = [verdict for verdict in usual.values() if "not in the dialect" in verdict.detail]
    assert len(lost) == len(cases), usual


@pytest.mark.parametrize(
    "lack, missing, text, cases",
    [
        (
            "without_sort",
            "tl.sort",
            SORTING,
            [
                case_of_values("aten::msort", self=torch.tensor([3.0, math.nan, -1.0, math.inf, 3.0, -0.5, -7.0])),
                case_of_values("aten::msort", self=torch.tensor([5, -(1 << 40) - 1, (1 << 40) + 1, 5, 1 << 40, -3])),
            ],
        ),
        (
            "without_histogram",
            "tl.histogram",
            COUNTING,
            [case_of_values("aten::bincount", self=torch.tensor([1, 9, 1, 0, 3, 1]), weights=None, minlength=10)],
        ),
    ],
    ids=["sort", "histogram"],
)  # fmt: skip
def test_other_lacks(tmp_path, lack, missing, text, cases):
    def jobs(library):
        kernel = library.parse(text, tmp_path / "mine.py")
        return [Job(Plan(case.overload, case.overload), kernel, (case,), dialect="") for case in cases]

    verdicts = judged(tmp_path, lack, missing, jobs)
    assert len(verdicts) == len(cases) and all(v.outcome is Outcome.PASS for v in verdicts.values()), verdicts
    without = judged(tmp_path, "without_erf", missing, jobs)
    assert all(f"not in the dialect of mychip: {missing} " in v.detail for v in without.values()), without


def test_a_directory_of_blocks_has_to_be_there(tmp_path):
    path = tmp_path / "mychip.yaml"
    path.write_text("base: sim\nlint:\n  base: triton\n  blocks: [without_erf, ./mine]\n")
    with pytest.raises(
        UserError, match=r"mychip.yaml:4: no directory .*mine; name one .* choose from without_atomics, without_erf, "
    ):
        load_profile(platforms.load(str(path)).lint)
    assert Path(DIRECTORY / "without_float64" / "types.py").is_file()
