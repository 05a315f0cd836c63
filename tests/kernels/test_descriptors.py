"""The blocks of the platform cuda, whose products and attention go through tensor descriptors: compiled for its
targets, and carried out by the interpreter where that knows them."""

import math
import re
from dataclasses import replace

import pytest
import torch
import triton
from shared import judging, sampled

import generate
from capture.device import compiles
from generate.kernel_library import KERNELS
from verify import platforms
from verify.cases.case import case_of_values
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.job import Job
from verify.lint import load_profile
from verify.outcome import Outcome

BLOCKS = load_profile(platforms.load("cuda").lint).with_blocks(generate.BLOCKS).blocks
CHIP = """
base: sim
description: the blocks of cuda, by the interpreter
lint: triton-nvidia
targets:
  - {backend: cuda, arch: 80, warp_size: 32, shared_bytes: 166912}
  - {backend: cuda, arch: 90, warp_size: 32, shared_bytes: 232448}
  - {backend: cuda, arch: 100, warp_size: 32, shared_bytes: 232448}
"""


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    directory = tmp_path_factory.mktemp("descriptors")
    (directory / "chip.yaml").write_text(CHIP)
    with judging(directory / "verdicts.sqlite", str(directory / "chip.yaml")) as judge:
        yield judge


def matrix(rows, columns, turned=False, offset=0):
    t = torch.randn(columns * rows + offset, dtype=torch.float32).to(torch.bfloat16)[offset:]
    return t.view(columns, rows).t() if turned else t.view(rows, columns)


def verdict(judge, overload, on="", **arguments):
    """on: the target with whose settings it is carried out, too."""
    kernel = KernelFile.read(KERNELS / f"matmul/{overload}.py", BLOCKS)
    unset = 'TUNING_TARGET = ""'
    assert kernel.source.count(unset) == 1
    kernel = replace(kernel, written=kernel.source.replace(unset, f'TUNING_TARGET = "{on}"'))
    case = case_of_values(f"aten::{overload}", **arguments)
    job = Job(Plan(case.overload, case.overload), kernel, (case,), repeats=1)
    return next(iter(judge.judge([job]).values()))


@pytest.mark.parametrize("turned", sampled([((False, False),), ((False, True),), ((True, False),)], [((True, False),)]))
def test_products_of_every_layout(judge, turned):
    torch.manual_seed(0)
    a, b = matrix(1400, 72, turned[0]), matrix(72, 1528, turned[1])
    assert uses_descriptors(a, b)
    found = verdict(judge, "mm", self=a, mat2=b)
    assert found.outcome is Outcome.PASS, f"{found.detail}\n{found.report}"


def test_a_bias_is_added(judge):
    torch.manual_seed(1)
    bias = torch.randn(1528).to(torch.bfloat16)
    found = verdict(judge, "addmm", self=bias, mat1=matrix(1400, 72), mat2=matrix(72, 1528), beta=0.5, alpha=2)
    assert found.outcome is Outcome.PASS, f"{found.detail}\n{found.report}"


@pytest.mark.sweep
def test_long_sums_have_wider_tiles(judge):
    torch.manual_seed(4)
    a, b = matrix(1400, 2048), matrix(2048, 1792)  # in so many tiles that K is not cut into parts
    assert uses_descriptors(a, b)
    found = verdict(judge, "mm", self=a, mat2=b)
    assert found.outcome is Outcome.PASS, f"{found.detail}\n{found.report}"


@pytest.mark.sweep
def test_many_rows_have_higher_tiles(judge):
    torch.manual_seed(5)
    a, b = matrix(33800, 72), matrix(72, 136, turned=True)
    assert uses_descriptors(a, b)
    found = verdict(judge, "mm", "sm_90", self=a, mat2=b)
    assert found.outcome is Outcome.PASS, f"{found.detail}\n{found.report}"


@pytest.mark.parametrize("m, n", sampled([(256, 136), (136, 256), (520, 384)], [(256, 136)]))
def test_parts_of_long_sums_are_added(judge, m, n):
    """Weight gradients: K is the number of tokens. The last has tiles of 256 columns, and of 256 rows."""
    torch.manual_seed(6)
    found = verdict(judge, "mm", self=matrix(m, 8000, True), mat2=matrix(8000, n))
    assert found.outcome is Outcome.PASS, f"{found.detail}\n{found.report}"


def test_rows_that_no_descriptor_tells_of(judge):
    torch.manual_seed(2)
    a = matrix(1400, 72, offset=1)
    assert not uses_descriptors(a, matrix(72, 1528))
    found = verdict(judge, "mm", self=a, mat2=matrix(72, 1528))
    assert found.outcome is Outcome.PASS, f"{found.detail}\n{found.report}"


def constants_of(parts, **known):
    """The constants of linked blocks by name, of which `known` replaces some."""
    names = {"triton": triton, "math": math}
    for part in parts:
        if re.match(r"# blocks/\S+\n[A-Z_\d]+ = ", part):
            exec(part, names)  # noqa: S102 - a block of ours
    return names | known


def uses_descriptors(a, b):
    """By the conditions of the block."""
    names = {}
    text = KernelFile.read(KERNELS / "matmul/mm.py", BLOCKS).source
    parts = text.split("\n\n\n")
    exec(next(part for part in parts if "def described(" in part), names)  # noqa: S102 - a block of ours
    tiles = -(-a.shape[0] // 128) * -(-b.shape[1] // 128)
    return names["described"](a) and names["described"](b) and tiles >= 128  # fewer are made smaller


@pytest.mark.parametrize(
    ("target", "version", "k", "dtype", "ending", "chosen"),
    [
        ("sm_90", "3.6", 64, torch.bfloat16, None, True),
        ("sm_90", "3.9", 2047, torch.bfloat16, None, True),
        ("sm_90", "3.8", 64, torch.bfloat16, None, False),
        ("sm_90", "", 64, torch.bfloat16, None, False),
        ("sm_100", "3.9", 64, torch.bfloat16, None, False),
        ("sm_90", "3.9", 63, torch.bfloat16, None, False),
        ("sm_90", "3.9", 2048, torch.bfloat16, None, False),
        ("sm_90", "3.9", 64, torch.float32, None, False),
        ("sm_90", "3.9", 64, torch.bfloat16, "an epilogue", False),
    ],
)
def test_gluon_serves_where_it_was_tried(target, version, k, dtype, ending, chosen):
    parts = KernelFile.read(KERNELS / "matmul/mm.py", BLOCKS).source.split("\n\n\n")
    names = constants_of(parts, TUNING_TARGET=target, TRITON=version)
    exec(next(part for part in parts if "def alternates(" in part), names)  # noqa: S102 - a block of ours
    assert names["alternates"](matrix(8, k), torch.empty(8, 8, dtype=dtype), (ending, None, None, None)) is chosen


@pytest.mark.parametrize(
    ("changed", "chosen"),
    [
        ({}, True),
        ({"target": "sm_100"}, False),
        ({"target": "sm_80"}, False),
        ({"version": "3.8"}, False),
        ({"dtype": torch.float32}, False),
        ({"D": 128}, True),
        ({"D": 96}, False),
        ({"Tq": 127, "Tk": 1024}, False),
        ({"Tk": 511}, False),
        ({"Tk": 0}, False),
        ({"bias": torch.zeros(1)}, False),
        ({"dropout_p": 0.5}, False),
        ({"scale": -1.0}, False),
        ({"scale": 2.0}, True),
        ({"fp32": True}, False),
        ({"offset": 1}, False),
        ({"apart": 65}, False),
        ({"apart": 72}, True),
    ],
)
def test_groups_serve_attention_where_they_were_tried(changed, chosen):
    given = {"target": "sm_90", "version": "3.6", "dtype": torch.float16, "D": 64, "Tq": 128, "Tk": 512, "bias": None}
    given |= {"dropout_p": 0.0, "scale": None, "fp32": False, "offset": 0, "apart": changed.get("D", 64)} | changed
    path = KERNELS / "attention/_scaled_dot_product_efficient_attention.py"
    parts = KernelFile.read(path, BLOCKS).source.split("\n\n\n")
    names = {"TUNING_TARGET": given["target"], "TRITON": given["version"]}
    for name in ("GLUON = ", "FEWEST_SCORES = ", "def heads_described(", "def groups_serve("):
        exec(next(part for part in parts if name in part), names)  # noqa: S102 - a block of ours

    def tensor(T):  # its 512 heads lie in one place
        rows = torch.empty(T * given["apart"] + 1, dtype=given["dtype"])[given["offset"] :]
        return rows.as_strided((32, 16, T, given["D"]), (0, 0, given["apart"], 1))

    query, key, value = tensor(given["Tq"]), tensor(given["Tk"]), tensor(given["Tk"])
    inputs, outs = (query, key, value, given["bias"]), (query.contiguous(), None)
    more = given["dropout_p"], given["scale"], given["fp32"]
    assert names["groups_serve"](inputs, outs, "upper", *more) is chosen


@pytest.mark.parametrize(
    ("target", "version", "sizes", "otherwise", "chosen"),
    [
        ("sm_90", "3.6", (1152, 384, 262144), 0.9, ((9, 14, 7830, 3, 181), 16, 132)),
        ("sm_90", "3.9", (1536, 384, 262144), 0.9, ((12, 11, 8192, 1, 0), 11, 132)),
        ("sm_90", "3.6", (768, 3072, 65536), 0.55, ((48, 2, 1505, 4, 181), 5, 132)),
        ("sm_90", "3.6", (3072, 1024, 65536), 0.5, ((64, 2, 2048, 1, 0), 2, 128)),
        ("sm_90", "3.6", (1024, 1024, 65536), 0.92, None),
        ("sm_90", "3.6", (1152, 384, 20000), 0.0, None),
        ("sm_90", "3.6", (4096, 4096, 65536), 0.0, None),
        ("sm_90", "3.8", (1536, 384, 262144), 0.9, None),
        ("sm_100", "3.9", (1536, 384, 262144), 0.9, None),
    ],
)
def test_shares_of_long_sums_are_planned(target, version, sizes, otherwise, chosen):
    """By the conditions of the block: worth it, on a GPU and by a Triton that it was tried on. Every column of every
    tile is in one share."""
    parts = KernelFile.read(KERNELS / "matmul/mm.py", BLOCKS).source.split("\n\n\n")
    names = constants_of(parts, TUNING_TARGET=target, TRITON=version)
    for name in ("processors", "worth", "plan_shares", "shares_serve"):
        exec(next(part for part in parts if f"def {name}(" in part), names)  # noqa: S102 - a block of ours
    assert names["shares_serve"](sizes, otherwise) == chosen
    if chosen is not None:
        (tiles, regular, whole, shares, short), sums, programs = chosen
        assert (programs - regular * tiles) * shares == (sums - regular) * tiles
        assert whole + (sums - regular) * short == -(-sizes[2] // 32)


def needs_a_gpu():
    if not torch.cuda.is_available() or not compiles():
        pytest.skip("needs a CUDA device, and kernels compiled: pytest -m gpu, without TRITON_INTERPRET")


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("m", "k", "n", "dtype"),
    [
        (1400, 72, 1528, torch.float16),
        (33800, 384, 136, torch.bfloat16),
        (2056, 1992, 1160, torch.float16),
        (1544, 2120, 1792, torch.bfloat16),
        (1152, 70000, 384, torch.bfloat16),
        (760, 8264, 3000, torch.float16),
    ],
)
def test_judged_on_a_gpu(tmp_path, m, k, n, dtype):
    """Of every layout: a tile a program and several, of few steps and of many, up to edges within a tile; the last two
    in shares of long sums, of which some programs have several."""
    needs_a_gpu()
    torch.manual_seed(7)
    pairs = [
        (matrix(m, k, left).to(dtype), matrix(k, n, right).to(dtype))
        for left in (False, True)
        for right in (False, True)
    ]
    bias = torch.randn(n).to(dtype)
    cases = {
        "mm": [case_of_values("aten::mm", self=a, mat2=b) for a, b in pairs],
        "addmm": [case_of_values("aten::addmm", self=bias, mat1=a, mat2=b, beta=0.5, alpha=3) for a, b in pairs],
    }
    plans = [
        Job(Plan(f"aten::{name}", f"aten::{name}"), KernelFile.read(KERNELS / f"matmul/{name}.py", BLOCKS), tuple(some))
        for name, some in cases.items()
    ]
    with judging(tmp_path / "verdicts.sqlite", "cuda") as judge:
        found = judge.judge(plans)
    assert len(found) == 8
    assert not (bad := [v for v in found.values() if v.outcome is not Outcome.PASS]), bad


@pytest.mark.gpu
@pytest.mark.parametrize(("m", "k", "n"), [(260, 72, 200), (128, 1000, 384)])
def test_batches_judged_on_a_gpu(tmp_path, m, k, n):
    """Of every layout, and where the batch is broadcast or lies inside."""
    needs_a_gpu()
    torch.manual_seed(10)

    def batch(rows, columns, turned):
        x = torch.randn(70, columns, rows) if turned else torch.randn(70, rows, columns)
        return x.to(torch.bfloat16).transpose(1, 2) if turned else x.to(torch.bfloat16)

    pairs = [(batch(m, k, left), batch(k, n, right)) for left in (False, True) for right in (False, True)]
    a, b = pairs[0]
    pairs += [(a[:1].expand(70, m, k), b), (a.transpose(0, 1).contiguous().transpose(0, 1), b)]
    kernel = KernelFile.read(KERNELS / "matmul/bmm.py", BLOCKS)
    cases = tuple(case_of_values("aten::bmm", self=a, mat2=b) for a, b in pairs)
    with judging(tmp_path / "verdicts.sqlite", "cuda") as judge:
        found = judge.judge([Job(Plan("aten::bmm", "aten::bmm"), kernel, cases)])
    assert len(found) == 6
    assert not (bad := [v for v in found.values() if v.outcome is not Outcome.PASS]), bad


def of_groups(rows, groups, k, n, turned=False, dtype=torch.bfloat16, alike=False):
    """Operands of products of rows in groups that end where `groups` says."""
    b = torch.randn(len(groups), n if turned else k, k if turned else n).to(dtype)
    b = b[:1].expand(b.shape) if alike else b
    ends = torch.tensor(groups, dtype=torch.int32)
    return {"self": torch.randn(rows, k).to(dtype), "mat2": b.transpose(1, 2) if turned else b, "offs": ends}


@pytest.mark.parametrize(
    ("changed", "chosen"),
    [
        ({}, True),
        ({"turned": True}, True),
        ({"dtype": torch.float32}, False),
        ({"k": 56}, False),
        ({"n": 56}, False),
        ({"k": 68}, False),  # rows of 136 bytes
        ({"groups": [1, 2, 3]}, False),
        ({"alike": True}, False),  # all groups have one matrix
        ({"target": "sm_100"}, False),
        ({"version": "3.8"}, False),
    ],
)
def test_gluon_serves_groups_where_it_was_tried(changed, chosen):
    given = {"rows": 128, "groups": [64, 128], "k": 64, "n": 64} | changed
    parts = KernelFile.read(KERNELS / "matmul/_grouped_mm.py", BLOCKS).source.split("\n\n\n")
    names = {"TUNING_TARGET": given.pop("target", "sm_90"), "TRITON": given.pop("version", "3.6")}
    for name in ("GLUON = ", "def described(", "def groups_alternate("):
        exec(next(part for part in parts if name in part), names)  # noqa: S102 - a block of ours
    operands = of_groups(**given)
    out = torch.empty(given["rows"], given["n"], dtype=operands["self"].dtype)
    assert names["groups_alternate"](operands["self"], operands["mat2"], out, operands["offs"]) is chosen


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_groups_judged_on_a_gpu(tmp_path, dtype):
    """Full tiles and others, groups without rows, several tiles a program, edges in every direction."""
    needs_a_gpu()
    torch.manual_seed(9)
    overload = "aten::_grouped_mm"
    shapes = [
        (1024, [256, 256, 640, 1024], 128, 256),
        (1000, [0, 130, 131, 1000], 72, 200),
        (40_000, [9_000, 20_001, 40_000], 200, 520),
        (4160, [65 * i for i in range(1, 65)], 1000, 136),
    ]
    cases = [
        case_of_values(overload, **of_groups(*shape, turned, dtype)) for shape in shapes for turned in (False, True)
    ]
    kernel = KernelFile.read(KERNELS / "matmul/_grouped_mm.py", BLOCKS)
    with judging(tmp_path / "verdicts.sqlite", "cuda") as judge:
        found = judge.judge([Job(Plan(overload, overload), kernel, tuple(cases))])
    assert len(found) == 8
    assert not (bad := [v for v in found.values() if v.outcome is not Outcome.PASS]), bad


def heads(B, H, T, D, dtype):
    """Queries, keys or values as a layer's projection leaves them."""
    return torch.randn(B, T, H, D).to(dtype).transpose(1, 2)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("B", "H", "Tq", "Tk", "D", "dtype"),
    [
        (2, 3, 256, 256, 64, torch.bfloat16),  # 32 keys a stage where a mask is causal
        (1, 2, 700, 700, 64, torch.float16),  # 64 keys, several items a head, edges within a tile
        (3, 50, 197, 197, 64, torch.bfloat16),  # several items a program
        (1, 1, 130, 333, 64, torch.float16),
        (1, 2, 333, 130, 64, torch.bfloat16),  # by flash's mask, queries that see no key
        (1, 2, 300, 300, 128, torch.bfloat16),
        (1, 1, 129, 257, 128, torch.float16),
    ],
)
def test_attention_judged_on_a_gpu(tmp_path, B, H, Tq, Tk, D, dtype):
    needs_a_gpu()
    torch.manual_seed(8)
    query, key, value = heads(B, H, Tq, D, dtype), heads(B, H, Tk, D, dtype), heads(B, H, Tk, D, dtype)
    given = {"query": query, "key": key, "value": value}
    plans = []
    for name, more in (
        ("efficient", {"attn_bias": None, "compute_log_sumexp": True}),
        ("cudnn", {"attn_bias": None, "compute_log_sumexp": True}),
        ("flash", {}),
    ):
        overload = f"aten::_scaled_dot_product_{name}_attention"
        file = f"attention/_scaled_dot_product_{name.replace('cudnn', 'efficient')}_attention.py"
        cases = [
            case_of_values(overload, **given, **more, is_causal=causal, scale=scale)
            for causal in (True, False)
            for scale in (None, 0.3)
        ]
        kernel = KernelFile.read(KERNELS / file, BLOCKS)
        assert kernel.source.count("FEWEST_SCORES = 2**25") == 1
        kernel = replace(kernel, written=kernel.source.replace("FEWEST_SCORES = 2**25", "FEWEST_SCORES = 0"))
        plans.append(Job(Plan(overload, overload), kernel, tuple(cases)))
    with judging(tmp_path / "verdicts.sqlite", "cuda") as judge:
        found = judge.judge(plans)
    assert len(found) == 12
    assert not (bad := [v for v in found.values() if v.outcome is not Outcome.PASS]), bad


@pytest.mark.gpu
@pytest.mark.parametrize("native", [True, False])
def test_served_on_a_gpu(native):
    from enable import library

    needs_a_gpu()
    torch.manual_seed(3)
    bias = torch.randn(1528).to(torch.bfloat16).cuda()
    operands = [
        (matrix(1400, 72, left).cuda(), matrix(72, 1528, right).cuda())
        for left in (False, True)
        for right in (False, True)
    ]
    with library.use("cuda", unverified=True, native=native) as served:
        for a, b in operands * 4:  # by Python, watched, and then by its program
            found = torch.mm(a, b), torch.addmm(bias, a, b)
            exact = a.float().cpu() @ b.float().cpu()
            for got, expected in zip(found, (exact, exact + bias.float().cpu()), strict=True):
                assert (got.float().cpu() - expected).abs().max() < 0.3  # half of a last digit at 64
    assert served.counts.served["aten::mm"] == served.counts.served["aten::addmm"] == 16
