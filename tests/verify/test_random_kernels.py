"""The judge on kernels that draw: the library's pass, and each flaw put into one of them is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from corpus import replaced
from shared import sampled

from generate import BLOCKS
from generate.kernel_library import KERNELS
from traces.values import unpack
from verify.cases.case import case_of_values
from verify.contract.derive import plans
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job
from verify.judging.random_judging import exhaustive
from verify.linking import link
from verify.outcome import Outcome

COPY = KernelFile.read(KERNELS / "copy" / "copy_.py", (BLOCKS,))
FILE = {
    "aten::bernoulli": "bernoulli",
    "aten::bernoulli_.float": "bernoulli",
    "aten::bernoulli_.Tensor": "bernoulli",
    "aten::bernoulli.out": "bernoulli",
    "aten::native_dropout": "native_dropout",
    "aten::uniform_": "uniform",
    "aten::normal_": "normal_functional",
    "aten::normal.Tensor_Tensor": "normal",
    "aten::rand": "rand",
    "aten::randn_like": "randn_like",
    "aten::randint": "randint",
    "aten::rrelu_with_noise": "rrelu_with_noise",
}


@pytest.fixture
def verdict_of(judge):
    def of(overload, arguments, *changes, draws=0):
        path = KERNELS / "random" / f"{FILE[overload]}.py"
        kernel = KernelFile.parse(replaced(link(path.read_text(), (BLOCKS,)), *changes), Path("kernel.py"))
        plan = next(p for p in plans(overload) if p.base in kernel.overloads)
        case = case_of_values(overload, **arguments)
        case = replace(case, id=f"{case.id}{draws}", draws=draws) if draws else case
        return judge.judge([Job(plan, kernel, (case,), COPY, repeats=1)])[overload, case.id]

    return of


def values(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(dtype)


X = values(33, 250)
BFLOAT16 = values(33, 250, dtype=torch.bfloat16)
DROPOUT = ("aten::native_dropout", {"input": X, "p": 0.2, "train": True})
BERNOULLI = ("aten::bernoulli_.float", {"self": X, "p": 0.3})
UNIFORM = ("aten::uniform_", {"self": X, "from": -1.0, "to": 2.0})
NORMAL = ("aten::normal_", {"self": X, "mean": 1.0, "std": 0.5})

SLOPES = ("aten::rrelu_with_noise", {"self": X, "noise": X + 2, "lower": 0.1, "upper": 0.4, "training": True})

HONEST = {
    "dropout": DROPOUT,
    "dropout of nothing": ("aten::native_dropout", {"input": X, "p": 0.0, "train": True}),
    "dropout of all": ("aten::native_dropout", {"input": BFLOAT16, "p": 1.0, "train": None}),
    "dropout out of training": ("aten::native_dropout", {"input": X, "p": 0.5, "train": False}),
    "dropout of no elements": ("aten::native_dropout", {"input": X[:0], "p": 0.5, "train": True}),
    "dropout of one": ("aten::native_dropout", {"input": X[0, 0], "p": 0.5, "train": True}),
    "dropout, transposed": ("aten::native_dropout", {"input": BFLOAT16.t(), "p": 0.1, "train": True}),
    "dropout, expanded": ("aten::native_dropout", {"input": X[:, :1].expand(33, 9), "p": 0.1, "train": True}),
    "bernoulli": BERNOULLI,
    "bernoulli, strided": ("aten::bernoulli_.float", {"self": values(20, 64)[:, ::2], "p": 0.01}),
    "bernoulli of probabilities": ("aten::bernoulli", {"self": X.abs().clamp(max=1)}),
    "bernoulli of float64": ("aten::bernoulli", {"self": X.double().abs().clamp(max=1).t()}),
    "bernoulli of others": ("aten::bernoulli_.Tensor", {"self": X, "p": X[:1].abs().clamp(max=1)}),
    "bernoulli, out": ("aten::bernoulli.out", {"self": X.abs().clamp(max=1), "generator": None, "out": X.bool()}),
    "uniform": UNIFORM,
    "uniform of halves": ("aten::uniform_", {"self": BFLOAT16, "from": 0.0, "to": 1.0}),
    "uniform of doubles": ("aten::uniform_", {"self": X.double(), "from": 0.0, "to": 1.0}),
    "normal": NORMAL,
    "normal of halves": ("aten::normal_", {"self": BFLOAT16, "mean": 0.0, "std": 0.02}),
    "normal of doubles": ("aten::normal_", {"self": X.double(), "mean": 0.0, "std": 1.0}),
    "normal, far from 0": ("aten::normal_", {"self": BFLOAT16, "mean": 1000.0, "std": 0.1}),
    "normal, a number": ("aten::normal_", {"self": X, "mean": 1.5, "std": 0.0}),
    "normal of tensors": ("aten::normal.Tensor_Tensor", {"mean": X[:1], "std": X.abs().t().contiguous().t()}),
    "rand": ("aten::rand", {"size": [3, 1000], "dtype": torch.float16}),
    "randn_like": ("aten::randn_like", {"self": X.t()}),
    "truth, which fresh memory may hold too": ("aten::randint", {"high": 2, "size": [900], "dtype": torch.bool}),
    "slopes": SLOPES,
}


SWEPT = {  # others are drawn by the same kernels, of these dtypes and layouts too
    *("dropout of one", "dropout, expanded", "bernoulli of probabilities", "uniform", "normal of tensors"),
    *("normal of doubles", "uniform of halves", "normal, a number", "rand", "bernoulli, strided"),
}


@pytest.mark.parametrize("name", sampled(HONEST, [name for name in HONEST if name not in SWEPT]))
def test_the_librarys_kernels_pass(name, verdict_of):
    verdict = verdict_of(*HONEST[name])
    assert verdict.outcome is Outcome.PASS, verdict


MANY = ("aten::bernoulli_.float", {"self": values(300, 1000), "p": 0.3})
OF_EACH = ("aten::bernoulli", {"self": X.abs().clamp(max=1)})
HALVES = ("aten::uniform_", {"self": BFLOAT16, "from": 0.0, "to": 1.0})
DOUBLES = ("aten::uniform_", {"self": X.double(), "from": 0.0, "to": 1.0})
SEED, OFFSET = "*philox, math", "random_words(start, BLOCK, seed, offset)"
KEY, CALL = "(whole >> 32).to(tl.uint32)", "(call >> 32).to(tl.uint32)"
LANES, UNIT = (
    "tl.cast(start, tl.int64) // 4 + tl.arange(0, BLOCK // 4)",
    " >> 8).to(tl.float32) * 5.9604644775390625e-08",
)
PATTERN = "((start + tl.arange(0, BLOCK) + offset % 5) * 7919 + (seed & 0xFFFF)) % 5 > 0"
FLAWS = {  # what is changed, and the rule or layer that refuses it, or one of several
    "ignores the seed": (*DROPOUT, (SEED, "7, philox[1], math"), "seed"),
    "ignores the offset": (*DROPOUT, (SEED, "philox[0], 7, math"), "offset"),
    "ignores both": (*BERNOULLI, (SEED, "7, 7, math"), "offset"),
    "ignores half of the seed": (*BERNOULLI, (KEY, "(whole * 0).to(tl.uint32)"), "seed"),
    "ignores half of the offset": (*BERNOULLI, (CALL, "call.to(tl.uint32)"), "offset"),
    "adds the two": (*BERNOULLI, (SEED, "philox[0] + philox[1], 0, math"), "pair"),
    "adds the index": (*UNIFORM, (f"(seed, offset, {LANES}", f"(seed, 0, offset + {LANES}"), "offset"),
    "same bits in every program": (*DROPOUT, (OFFSET, "random_words(start * 0, BLOCK, seed, offset)"), "index"),
    "same bits in every lane": (*DROPOUT, (LANES, f"{LANES} // 64"), "index"),
    "one word for four": (*BERNOULLI, ("tl.join(b, d)", "tl.join(a, c)"), "index"),
    "a pattern": (*DROPOUT, (f"{OFFSET}.to(tl.int64) < limit", PATTERN), "seed offset index pair"),
    "keeps what it is to drop": (*DROPOUT, (" < limit", " >= limit"), "share"),
    "p for 1 - p": (*DROPOUT, ("else 1.0 - p\n", "else p\n"), "compare"),
    "no scale": (*DROPOUT, ("(x.dtype) * scale", "(x.dtype)"), "compare"),
    "adds where it drops": (*DROPOUT, ("(x.dtype) * scale", "(x.dtype) * scale + 1e-3"), "compare"),
    "twos": (*BERNOULLI, ("    return x\n", "    return 2 * x.to(tl.int32)\n"), "compare"),
    "half a percent too many": (*MANY, ("ceil(p * 4", "ceil((p + 0.005) * 4"), "share"),
    "the first probability": (*OF_EACH, ("strided(i, shape, strides[k], HINTS[k])", "i * 0"), "share"),
    "to is in the range": (*HALVES, ("tl.where(x >= high.to(DTYPE), low.to(DTYPE), x)", "x"), "compare"),
    "16 values": (*UNIFORM, (UNIT, " >> 28).to(tl.float32) * 0.0625"), "grid"),
    "4096 values": (*UNIFORM, (UNIT, " >> 20).to(tl.float32) * 0.000244140625"), "grid"),
    "32 bits of a double": (*DOUBLES, ("+ (low >> 6).to(tl.float64)", "+ 0.5"), "grid"),
    "squares": (*UNIFORM, ("low + x * (high", "low + x * x * (high"), "distribution"),
    "a tenth more variance": (*NORMAL, ("mean + std * x", "mean + std * x * 1.0488"), "variance"),
    "variance for deviation": (*NORMAL, ("mean + std * x", "mean + std * std * x"), "variance"),
    "another mean": (*NORMAL, ("mean + std * x", "mean + std * (x + 0.04)"), "mean"),
    "pairs of opposite sign": (*NORMAL, ("radius * sine", "-radius * (tl.fma(s, -4.0, 1.0) * series)"), "index"),
}


TOLD_TWICE = {  # the same rule refuses another in the same way
    *("ignores the seed", "ignores the offset", "ignores half of the offset", "adds the index", "one word for four"),
    *("same bits in every lane", "no scale", "adds where it drops", "twos", "half a percent too many"),
    *("4096 values", "variance for deviation", "same bits in every program"),
}


@pytest.mark.parametrize("name", sampled(FLAWS, [name for name in FLAWS if name not in TOLD_TWICE]))
def test_a_flawed_kernel_is_refused(name, verdict_of):
    overload, arguments, change, rule = FLAWS[name]
    verdict = verdict_of(overload, arguments, change)
    assert verdict.outcome is Outcome.WRONG, verdict
    assert (verdict.rule or verdict.layer) in rule.split() and verdict.layer in ("draws", "compare"), verdict
    assert verdict.detail in verdict.report


def test_fresh_memory_is_no_draw(verdict_of):
    """Where what it is filled with is lawful."""
    truth = HONEST["truth, which fresh memory may hold too"]
    change = (
        "    return elementwise(identity, source=(integers_below",
        "    return out\n    elementwise(identity, source=(integers_below",
    )
    verdict = verdict_of(*truth, change)
    assert (verdict.outcome, verdict.layer) == (Outcome.CHEAT, "launch"), verdict
    verdict = verdict_of(*truth, ("shares.to(tl.int64) + low", "shares.to(tl.int64) * 0 + 1"))
    assert (verdict.outcome, verdict.layer, verdict.rule) == (Outcome.WRONG, "draws", "share"), verdict


def test_the_noise_that_is_drawn_is_looked_at(verdict_of):
    for change in (
        ("(u, low, high, u.dtype)", "(0.5 + 0.0 * u, low, high, u.dtype)"),
        ("x * slope, slope", "x * slope, slope / 2"),
    ):
        verdict = verdict_of(*SLOPES, change)
        assert verdict.outcome is Outcome.WRONG and verdict.layer in ("draws", "compare"), verdict


def test_atens_own_draws_are_refused(verdict_of):
    change = ("    probability = self if p is None else p\n", "    return out.bernoulli_(0.3)\n")
    verdict = verdict_of(*BERNOULLI, change)
    assert (verdict.outcome, verdict.layer) == (Outcome.CHEAT, "dispatch"), verdict


def test_draws_depend_on_nothing_but_the_pair_and_the_index(verdict_of):
    """A counter that each program takes the next number of, whichever comes first."""
    verdict = verdict_of(*DROPOUT, *COUNTER)
    assert (verdict.outcome, verdict.rule) == (Outcome.WRONG, "reproducible"), verdict


COUNTER = (
    ("SOURCE(start, BLOCK", "SOURCE(tl.atomic_add(counter, 1) * BLOCK, BLOCK"),
    ("    source,\n    firsts,", "    source,\n    counter,\n    firsts,"),
    (
        "        tuple(firsts),\n",
        "        torch.tensor([0], dtype=torch.int32, device=outs[0].device),\n        tuple(firsts),\n",
    ),
)


def test_the_same_case_has_the_same_verdict(verdict_of):
    """And another one where it is drawn with other keys, as of another kernel file."""
    change = FLAWS["a tenth more variance"][2]
    other = ("\nOVERLOADS = (", "\nSPARE = tuple()\nOVERLOADS = (")
    first, second = verdict_of(*NORMAL, change), verdict_of(*NORMAL, change, other)
    again = verdict_of(*NORMAL, change)
    assert first.detail == again.detail and first.detail != second.detail and first.rule == second.rule


CUT = ("low + x * (high", "low + tl.maximum(x, 0.0009765625) * (high")  # no draw in the lowest 2^-10


def test_more_draws_show_a_tail_that_is_missing(verdict_of):
    assert verdict_of(*UNIFORM, CUT).outcome is Outcome.PASS
    verdict = verdict_of(*UNIFORM, CUT, draws=1 << 18)
    assert (verdict.outcome, verdict.rule) == (Outcome.WRONG, "tail"), verdict
    assert "of 264000 draws 0 lie in the low tail, expected" in verdict.detail
    assert verdict_of(*UNIFORM, draws=1 << 18).outcome is Outcome.PASS


def test_of_each_law_the_largest_case_is_looked_at_more_closely():
    few, many = (case_of_values("aten::uniform_", self=torch.zeros(n), to=1.0) for n in (100, 1 << 17))
    sized = case_of_values("aten::rand", size=[4])
    other = case_of_values("aten::exp", self=torch.zeros(1 << 18))
    found = exhaustive([few, many, sized, other])
    assert [(c.overload, c.draws) for c in found] == [("aten::uniform_", 1 << 24), ("aten::rand", 1 << 24)]
    assert found[0].load() == many.load() and found[0].id != many.id
    assert unpack(found[1].load())["size"] == [1 << 17]
    assert exhaustive([few, other]) == []
