"""Kernels that take many tensors in one launch: more of them than one takes, of several types, sizes and layouts."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch
from shared import Launches, packaged, sampled

from verify.cases.case import case_of_values
from verify.child.loading import load_wrappers
from verify.contract.derive import call
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job
from verify.outcome import Outcome

KERNELS = Path(__file__).parents[2] / "generate" / "kernels"


def verdict_of(judge, overload, fault=("", ""), **arguments):
    """fault: what the library's kernel has, and what this one has instead."""
    match = packaged().match(overload)
    kernel = match.kernel
    if fault[0]:
        assert fault[0] in kernel.source
        kernel = KernelFile.parse(kernel.source.replace(*fault), Path("bad.py"))
    case = case_of_values(overload, **arguments)
    return judge.judge([Job(match.plan, kernel, (case,), match.copy, repeats=1)])[overload, case.id]


def draw(shapes, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(s, generator=generator).to(dtype) for s in shapes]


def many(seed=0):
    """35 contiguous tensors of one type, the edges of blocks among them."""
    return draw([(4096,), (4097,), (4095,), (), (2, 3), *[(k,) for k in range(1, 31)]], seed)


def several(seed=0):
    """Of two types, without elements, and not contiguous."""
    halves = draw([(5,), (0,), (3, 4), (70,)], seed + 1, torch.bfloat16)
    others = [*draw([(4, 6)], seed + 2)[0].t().split(2), torch.empty(0, 3)]
    return [halves[0], *draw([(7,), (0, 2), (9, 3)], seed), *halves[1:], *others, *draw([(0,), (11,)], seed + 3)]


def adamw(lists):
    given = dict(zip(("self", "grads", "exp_avgs", "exp_avg_sqs"), lists, strict=True))
    given["exp_avg_sqs"] = [t.abs() for t in given["exp_avg_sqs"]]
    numbers = {"lr": 1e-2, "beta1": 0.9, "beta2": 0.95, "weight_decay": 0.1, "eps": 1e-8}
    steps = [torch.tensor(float(k + 1)) for k in range(len(lists[0]))]
    return {**given, **numbers, "max_exp_avg_sqs": [], "state_steps": steps, "amsgrad": False, "maximize": False}


CALLS = {
    "aten::_foreach_add_.List": lambda a, b, c: {"self": a, "other": b, "alpha": 0.5},
    "aten::_foreach_add.List": lambda a, b, c: {"self": a, "other": b},
    "aten::_foreach_add_.Scalar": lambda a, b, c: {"self": a, "scalar": 1.5},
    "aten::_foreach_sub_.List": lambda a, b, c: {"self": a, "other": b},
    "aten::_foreach_mul_.Tensor": lambda a, b, c: {"self": a, "other": torch.tensor(0.3)},
    "aten::_foreach_div_.ScalarList": lambda a, b, c: {"self": a, "scalars": [0.5 + k for k in range(len(a))]},
    "aten::_foreach_maximum_.List": lambda a, b, c: {"self": a, "other": b},
    "aten::_foreach_addcmul_.Scalar": lambda a, b, c: {"self": a, "tensor1": b, "tensor2": c, "value": 0.1},
    "aten::_foreach_addcdiv_.ScalarList": lambda a, b, c: {
        "self": a, "tensor1": b, "tensor2": [t.abs() + 1 for t in c], "scalars": [0.1 * k for k in range(len(a))],
    },
    "aten::_foreach_lerp_.Scalar": lambda a, b, c: {"self": a, "tensors1": b, "weight": 0.1},
    "aten::_foreach_sqrt": lambda a, b, c: {"self": [t.abs() for t in a]},
    "aten::_foreach_neg_": lambda a, b, c: {"self": a},
    "aten::_foreach_reciprocal_": lambda a, b, c: {"self": [t.abs() + 1 for t in a]},
    "aten::_foreach_norm.Scalar": lambda a, b, c: {"self": a, "ord": 2},
    "aten::_foreach_copy_": lambda a, b, c: {"self": a, "src": b},
    "aten::_foreach_zero_": lambda a, b, c: {"self": a},
    "aten::_amp_foreach_non_finite_check_and_unscale_": lambda a, b, c: {
        "self": a, "found_inf": torch.zeros(1), "inv_scale": torch.tensor([0.25]),
    },
}  # fmt: skip


LISTED = list(itertools.product(CALLS, (many, several)))


# Every fourth call on each of both, and a norm, which is no elementwise one.
IN_CI = [row for i, row in enumerate(LISTED) if i % 8 in (1, 6) or row == ("aten::_foreach_norm.Scalar", several)]


@pytest.mark.parametrize(("overload", "lists"), sampled(LISTED, IN_CI))
def test_lists(judge, overload, lists):
    found = verdict_of(judge, overload, **CALLS[overload](*map(lists, (0, 100, 200))))
    assert found.outcome is Outcome.PASS, found


@pytest.mark.parametrize("overload", sampled(["aten::_fused_adamw_", "aten::_fused_adam_"], ["aten::_fused_adamw_"]))
def test_fused(judge, overload):
    found = verdict_of(judge, overload, **adamw([many(seed) for seed in range(4)]))
    assert found.outcome is Outcome.PASS, found


def test_the_kernels_are_those_of_lists():
    library = packaged()
    for overload in CALLS:
        match = library.match(overload)
        assert match.plan.direct or "launch_elementwise" in match.kernel.source, match.plan


def test_a_list_that_is_broadcast(judge):
    """(1, 6) and (6, 1) have as many elements, and the sum has more."""
    xs, ys = draw([(1, 6), (4, 3), (6,), (2, 3)]), draw([(6, 1), (3,), (1, 6), ()], 1)
    assert verdict_of(judge, "aten::_foreach_add.List", self=xs, other=ys).outcome is Outcome.PASS


def test_a_list_whose_members_promote(judge):
    ys = [torch.tensor([1, 2]), torch.tensor(2.5), torch.tensor([1.5, 2.5])]
    xs = [torch.tensor([True, False]), torch.tensor([1, 2]), torch.tensor([1.0, 2.0], dtype=torch.float16)]
    assert verdict_of(judge, "aten::_foreach_mul.List", self=xs, other=ys).outcome is Outcome.PASS


JOINED = list(itertools.product((0, 1, -1), ("aten::cat", "aten::stack")))


@pytest.mark.parametrize(("dim", "overload"), sampled(JOINED, [JOINED[i] for i in (0, 3, 4)]))
def test_many_are_joined(judge, overload, dim):
    shapes = [(3, 5)] * 40
    if overload == "aten::cat":
        shapes = [(k % 4, 5) if dim == 0 else (3, k % 4) for k in range(40)]
    found = verdict_of(judge, overload, tensors=draw(shapes), dim=dim)
    assert found.outcome is Outcome.PASS, found


def test_wide_rows_and_narrow_ones_are_joined(judge):
    found = verdict_of(judge, "aten::cat", tensors=draw([(3, 9000), (3, 1), (3, 0), (3, 70)]), dim=1)
    assert found.outcome is Outcome.PASS, found


FAULTS = {
    "the first launch alone": (
        "range(0, len(members), TENSORS_PER_LAUNCH)",
        "range(0, min(len(members), TENSORS_PER_LAUNCH), TENSORS_PER_LAUNCH)",
    ),
    "the tensor before": (">= firsts[k]", "> firsts[k]"),
    "not the last block": ("triton.cdiv(n, rounds * BLOCK)", "triton.cdiv(n - 1, rounds * BLOCK)"),
    "another's size": ("pick(sizes, firsts)", "sizes[0]"),
    "the padding is a tensor": ("[plain(programs)] * missing", "[plain(0)] * missing"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(judge, name):
    found = verdict_of(judge, "aten::_foreach_neg", FAULTS[name], self=many())
    assert found.outcome is not Outcome.PASS


# ---- launches --------------------------------------------------------------------------------------------------------


def launched(tmp_path, tensors):
    match = packaged().match("aten::_foreach_neg_")
    wrapper = load_wrappers({"kernel": match.kernel.source}, tmp_path)["kernel"]
    wrapper.__globals__["elementwise_kernel"] = found = Launches()
    call(match.plan, {"self": tensors}, wrapper, True, None)
    return [(grid[0], *args) for grid, args, _ in found.noted]


@pytest.mark.parametrize("count, lengths", [(0, []), (1, [1]), (8, [8]), (9, [32]), (70, [32, 32, 8])])
def test_lengths_of_launches(tmp_path, count, lengths):
    assert [len(xs) for _, (xs,), *_ in launched(tmp_path, [torch.ones(16) for _ in range(count)])] == lengths


def test_integers_of_launches_are_neither_1_nor_multiples_of_16(tmp_path):
    """Triton would compile anew for those."""
    for _, _, _, _, firsts, sizes, *_ in launched(tmp_path, [torch.ones(1 + 4096 * (k % 17)) for k in range(40)]):
        assert all(v > 1 and v % 16 for v in (*firsts, *sizes))


def test_launches_of_types_and_layouts(tmp_path):
    halves, square = [torch.ones(4).half() for _ in range(3)], torch.ones(3, 4)
    given = [*halves, torch.ones(5), torch.empty(0), square[:, :2], *halves, square.t()]
    found = launched(tmp_path, given)
    assert [len({id(x) for x in xs}) for _, (xs,), *_ in found] == [3, 2, 1]
    assert [len(xs) for _, (xs,), *_ in found] == [8, 8, 1]
    shape, strides = found[2][-2:]
    assert [v // 2 - 1 for v in shape] == [1, 1, 3, 2] and [v // 2 - 1 for v in strides[0]] == [0, 0, 4, 1]
