"""The operators of a loss scaler, and the fused optimizers that take its scale and flag."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
import torch
from shared import packaged, sampled

from verify.cases.case import case_of_values
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job
from verify.outcome import Outcome

KERNELS = Path(__file__).parents[2] / "generate" / "kernels"
UNSCALE = "aten::_amp_foreach_non_finite_check_and_unscale_"
UPDATE = "aten::_amp_update_scale_"
FUSED = ("_fused_adamw_", "_fused_adam_", "_fused_sgd_", "_fused_adagrad_")
DTYPES = (torch.float16, torch.bfloat16, torch.float32)


def verdicts_of(judge, overload, fault, repeats, given):
    """fault: what the library's kernel has, and what this one has instead. given: arguments of each case."""
    match = packaged().match(overload)
    kernel = match.kernel
    if fault[0]:
        assert fault[0] in kernel.source
        kernel = KernelFile.parse(kernel.source.replace(*fault), Path("bad.py"))
    cases = tuple(case_of_values(overload, **arguments) for arguments in given)
    found = judge.judge([Job(match.plan, kernel, cases, match.copy, repeats=repeats)])
    assert len(found) == len(given)
    return list(found.values())


def verdict_of(judge, overload, fault=("", ""), repeats=1, **arguments):
    return verdicts_of(judge, overload, fault, repeats, [arguments])[0]


def assert_passes(judge, overload, **arguments):
    found = verdict_of(judge, overload, **arguments)
    assert found.outcome is Outcome.PASS, found.report


# ---- unscaling ----------------------------------------------------------------------------------------------------


def gradients(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    shapes = ((5000,), (3, 7), (), (0, 4), (4, 6, 2))
    made = [(torch.randn(s, generator=generator) * 300).to(dtype) for s in shapes]
    return [*made[:4], made[4].permute(2, 0, 1)]


def unscaled(grads, flag=0.0, inverse=1 / 1024):
    return {"self": grads, "found_inf": torch.tensor([flag]), "inv_scale": torch.tensor([inverse])}


@pytest.mark.parametrize("dtype", DTYPES)
def test_unscale(judge, dtype):
    assert_passes(judge, UNSCALE, **unscaled(gradients(dtype)))


VALUES, PLACES = (math.inf, -math.inf, math.nan), ((0, 0), (0, 4999), (1, 20), (2, 0), (4, 47))
FLAGGED = list(itertools.product(PLACES, VALUES, DTYPES))
# Each place, each value and each dtype.
IN_CI = [(p, VALUES[i % 3], DTYPES[(i + i // 3) % 3]) for i, p in enumerate(PLACES)]


@pytest.mark.parametrize(("place", "value", "dtype"), sampled(FLAGGED, IN_CI))
def test_unscale_flags_what_is_not_finite(judge, dtype, value, place):
    grads = gradients(dtype)
    which, element = place
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(element), grads[which].shape))
    grads[which][index] = value
    assert_passes(judge, UNSCALE, **unscaled(grads))


@pytest.mark.parametrize("inverse", sampled([1.0, 0.0, 2.0**-24, 3e38, math.inf], [3e38, math.inf]))
def test_unscale_by(judge, inverse):
    """What becomes infinite or NaN by being unscaled is not flagged."""
    assert_passes(judge, UNSCALE, **unscaled(gradients(), inverse=inverse))


@pytest.mark.parametrize("flag", [0.0, 1.0])
def test_unscale_keeps_the_flag(judge, flag):
    assert_passes(judge, UNSCALE, **unscaled(gradients(), flag))


def test_unscale_nothing(judge):
    assert_passes(judge, UNSCALE, **unscaled([]))
    assert_passes(judge, UNSCALE, **unscaled([torch.empty(0), torch.empty(3, 0)]))


def test_unscale_largest_and_smallest_halves(judge):
    assert_passes(judge, UNSCALE, **unscaled([torch.tensor([65504, -65504, 6e-8, 6.1e-5, 0]).half()], inverse=0.3))


BAD_UNSCALES = {
    "nothing is flagged": ("found_inf_ptr, 1.0", "found_inf_ptr, 0.0"),
    "NaN is not flagged": ('tl.abs(grad) < float("inf")', '(tl.abs(grad) < float("inf")) | (grad != grad)'),
    "infinities are not flagged": ('tl.abs(grad) < float("inf")', "grad == grad"),
    "-inf is not flagged": ('tl.abs(grad) < float("inf")', 'grad < float("inf")'),
    "only the first block": ("if tl.min(", "if tl.program_id(0) == 0 and tl.min("),
    "the first gradient alone": ("(self, inv_scale), (self,)", "(self[:1], inv_scale), (self[:1],)"),
    "halves are multiplied as they are": (
        "grad * inv_scale",
        "grad.to(tl.float16) * inv_scale.to(tl.float16)",
    ),
    "the flag is set in any case": (".to(tl.int32), 0) == 0", ".to(tl.int32), 0) >= 0"),
}


def assert_some_are_wrong(judge, overload, fault, given):
    """On the other inputs it is right."""
    found = {v.outcome for v in verdicts_of(judge, overload, fault, 0, given)}
    assert Outcome.WRONG in found <= {Outcome.WRONG, Outcome.PASS}


@pytest.mark.parametrize("name", BAD_UNSCALES)
def test_bad_unscales(judge, name):
    given = []
    for value in (math.inf, -math.inf, math.nan, 1.0):
        grads = gradients(torch.float16)
        grads[0][-1] = value
        given.append(unscaled(grads, inverse=1e-7))
    assert_some_are_wrong(judge, UNSCALE, BAD_UNSCALES[name], given)


# ---- the scale -------------------------------------------------------------------------------------------------------


def scale(value=65536.0, tracker=5, flag=0.0, interval=2000, growth=2.0, backoff=0.5):
    return {
        "self": torch.tensor([value]),
        "growth_tracker": torch.tensor([tracker], dtype=torch.int32),
        "found_inf": torch.tensor([flag]),
        "scale_growth_factor": growth,
        "scale_backoff_factor": backoff,
        "growth_interval": interval,
    }


SCALES = {
    "counts": {},
    "first step": {"tracker": 0},
    "backs off": {"flag": 1.0},
    "backs off though several were found": {"flag": 3.0},
    "backs off where it would grow": {"flag": 1.0, "tracker": 1999},
    "grows": {"tracker": 1999},
    "one step before": {"tracker": 1998},
    "past the interval": {"tracker": 2000},
    "grows each step": {"tracker": 0, "interval": 1},
    "not to infinity": {"tracker": 1999, "value": 3e38},
    "odd factors": {"tracker": 1999, "growth": 1.1, "backoff": 0.3},
    "odd back-off": {"flag": 1.0, "growth": 1.1, "backoff": 0.3},
    "small": {"flag": 1.0, "value": 1e-38, "backoff": 0.01},
}


@pytest.mark.parametrize("name", SCALES)
def test_update_scale(judge, name):
    assert_passes(judge, UPDATE, **scale(**SCALES[name]))


BAD_SCALES = {
    "never grows": ("successful == growth_interval", "successful < 0"),
    "grows late": ("successful == growth_interval", "successful > growth_interval"),
    "grows to infinity": ('tl.where(tl.abs(grown) < float("inf"), grown, scale.to(tl.float32))', "grown"),
    "never backs off": ("tl.load(found_inf_ptr) != 0", "tl.load(found_inf_ptr) < 0"),
    "does not start to count again": (
        "tl.where(overflowed | grows, 0, successful)",
        "tl.where(overflowed, 0, successful)",
    ),
    "counts bad steps": ("tl.where(overflowed | grows, 0, successful)", "tl.where(grows, 0, successful)"),
}


@pytest.mark.parametrize("name", BAD_SCALES)
def test_bad_scales(judge, name):
    assert_some_are_wrong(judge, UPDATE, BAD_SCALES[name], [scale(**given) for given in SCALES.values()])


def test_the_flag_is_not_read_back(judge):
    fault = ("    kernel_update_scale[", "    found_inf.item()\n    kernel_update_scale[")
    found = verdict_of(judge, UPDATE, fault, **scale())
    assert found.outcome is Outcome.CHEAT and "numbers back" in found.detail


# ---- fused optimizers ------------------------------------------------------------------------------------------------


def fused(name, dtype=torch.float32, grad_dtype=None, flag=0.0, scaled=True, **changed):
    generator = torch.Generator().manual_seed(0)
    shapes = ((4500,), (3, 7), ())

    def draw(positive=False, kind=dtype):
        made = [torch.randn(s, generator=generator) for s in shapes]
        made = [t.abs() if positive else t for t in made]
        return [*(t.to(kind) for t in made), torch.ones(4, 6).t().to(kind)]

    grads = [g * 1024 if scaled and dtype is torch.float32 else g for g in draw(kind=grad_dtype or dtype)]
    steps = [torch.tensor(float(k + 1)) for k in range(4)]
    scaling = {"grad_scale": torch.tensor(1024.0), "found_inf": torch.tensor(flag)} if scaled else {}
    common = {"self": draw(), "grads": grads}
    adam = {
        "exp_avgs": draw(), "exp_avg_sqs": draw(True), "max_exp_avg_sqs": [], "state_steps": steps, "lr": 1e-2,
        "beta1": 0.9, "beta2": 0.95, "weight_decay": 0.1, "eps": 1e-8, "amsgrad": False, "maximize": False,
    }  # fmt: skip
    if changed.get("amsgrad"):
        changed["max_exp_avg_sqs"] = draw(True)
    own = {
        "_fused_adamw_": adam,
        "_fused_adam_": adam,
        "_fused_sgd_": {
            "momentum_buffer_list": draw(), "weight_decay": 0.1, "momentum": 0.9, "lr": 1e-2, "dampening": 0.2,
            "nesterov": False, "maximize": False, "is_first_step": False,
        },
        "_fused_adagrad_": {
            "state_sums": draw(True), "state_steps": steps, "lr": 1e-2, "lr_decay": 0.1, "weight_decay": 0.1,
            "eps": 1e-10, "maximize": False,
        },
    }[name]  # fmt: skip
    return {**common, **own, **scaling, **changed}


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("flag", [0.0, 1.0])
def test_fused_with_a_scaler(judge, name, flag):
    assert_passes(judge, f"aten::{name}", **fused(name, flag=flag))


PLAIN = [*zip(FUSED, (*DTYPES, torch.float16), strict=True)]  # each of both; float32 has a scaler above


@pytest.mark.parametrize(("name", "dtype"), sampled(itertools.product(FUSED, DTYPES), PLAIN))
def test_fused_without_a_scaler(judge, name, dtype):
    assert_passes(judge, f"aten::{name}", **fused(name, dtype, scaled=False))


CHANGES = [*itertools.product(FUSED, ({"maximize": True}, {"weight_decay": 0.0}))]


@pytest.mark.parametrize(("name", "change"), sampled(CHANGES, [CHANGES[i] for i in (0, 3, 4, 7)]))
def test_fused_options(judge, name, change):
    assert_passes(judge, f"aten::{name}", **fused(name, **change))


@pytest.mark.parametrize(
    ("name", "scaled"), sampled(itertools.product(FUSED[:2], (False, True)), [(FUSED[0], False), (FUSED[1], True)])
)
def test_fused_amsgrad(judge, name, scaled):
    assert_passes(judge, f"aten::{name}", **fused(name, scaled=scaled, amsgrad=True))


@pytest.mark.parametrize("name", sampled(FUSED, FUSED[::3]))
def test_fused_with_a_tensor_as_rate(judge, name):
    found = verdict_of(judge, f"aten::{name}.tensor_lr", **fused(name, scaled=False, lr=torch.tensor(0.01)))
    refused = name == "_fused_adagrad_" and "does not answer" in found.detail  # ATen's CPU has no such kernel
    assert found.outcome is Outcome.PASS or refused, found


@pytest.mark.parametrize(
    "change",
    [
        {"nesterov": True, "dampening": 0.0},
        {"is_first_step": True},
        {"is_first_step": True, "nesterov": True, "dampening": 0.0},
        {"momentum": 0.0, "momentum_buffer_list": []},
    ],
)
def test_fused_sgd_options(judge, change):
    assert_passes(judge, "aten::_fused_sgd_", **fused("_fused_sgd_", **change))


@pytest.mark.parametrize("name", FUSED)
def test_fused_of_nothing(judge, name):
    given = fused(name)
    given = {key: [] if isinstance(value, list) else value for key, value in given.items()}
    found = verdict_of(judge, f"aten::{name}", **given)
    assert found.outcome in (Outcome.PASS, Outcome.SKIPPED), found


BAD_FUSED = {
    "the flag is ignored": ("found_inf == 1", "found_inf == 2", 1.0),
    "the gradient is not written back": ("None if grad_scale is None else grads", "None", 0.0),
    "the scale is ignored": ("divide(grad, grad_scale)", "grad", 0.0),
}  # fmt: skip


FAULTY = [*itertools.product(FUSED, BAD_FUSED)]


@pytest.mark.parametrize(("name", "fault"), sampled(FAULTY, [FAULTY[i] for i in (0, 5, 6, 10)]))  # each of both
def test_bad_fused(judge, name, fault):
    before, after, flag = BAD_FUSED[fault]
    found = verdict_of(judge, f"aten::{name}", (before, after), 0, **fused(name, flag=flag))
    assert found.outcome is Outcome.WRONG, found
