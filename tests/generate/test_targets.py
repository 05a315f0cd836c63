"""Every kernel that nanoGPT and DLRM ask for compiles for the targets of platforms that are not here."""

import pytest
import torch
from shared import compiled, judging, packaged, sampled

from enable.cli import run
from enable.cover.coverage import cases_by_overload
from traces.store import Trace
from verify.cases import references
from verify.cases.case import case_of_values
from verify.judging.judge import Job
from verify.outcome import Outcome

NANOGPT = ["nanogpt", "--batch", "2", "--optimizer", "adamw-fused"]
NANOGPT += [w for s in ("n_layer=1", "n_embd=16", "n_head=2", "block_size=8") for w in ("--set", s)]
NANOGPT += ["--set", "bf16=true", "--set", "dropout=0.2"]
DLRM = ["dlrm", "--batch", "8", "--optimizer", "adagrad"]
DLRM += [w for s in ("tables=2", "rows=50", "lookups=3", "dim=8") for w in ("--set", s)]


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """The first case of each overload of both models."""
    workspace = tmp_path_factory.mktemp("targets")
    found = {}
    for name, words in (("nanogpt", NANOGPT), ("dlrm", DLRM)):
        path = workspace / f"{name}.trace"
        assert run(["--workspace", str(workspace), "capture", *words, "--device", "sim", "--out", str(path)]) == 0
        for overload, of_it in cases_by_overload(Trace.open(path)).items():
            found.setdefault(overload, of_it[0])
    return found


# CI compiles half of the kernels, each for one of the two.
@pytest.mark.parametrize(
    ("platform", "which"),
    sampled(
        [("cuda", "all"), ("hip", "all"), ("cuda", "first"), ("hip", "second")], [("cuda", "first"), ("hip", "second")]
    ),
)
def test_kernels_compile(cases, platform, which, tmp_path):
    library = packaged()
    assert len(cases) > 50
    chosen = sorted(cases)[{"all": slice(None), "first": slice(0, None, 4), "second": slice(2, None, 4)}[which]]
    matches = {overload: library.match(overload) for overload in chosen}
    jobs = [
        Job(m.plan, m.kernel, (cases[o],), m.copy, off=frozenset({"run"})) for o, m in matches.items() if m is not None
    ]
    assert len(jobs) > (50 if which == "all" else 12)
    with judging(tmp_path / "v.sqlite", platform, workers=2, cache=compiled()) as judge:
        verdicts = judge.judge(jobs)
    failed = {o: v.detail for (o, _), v in verdicts.items() if v.outcome is not Outcome.PASS}
    assert failed == {} and len(verdicts) == len(jobs)


def attention(kind, dim):
    """A call of a variant that GPUs dispatch to, causal and with dropout, and of its backward."""
    rows = {name: torch.zeros(1, 2, 1024, dim, dtype=torch.bfloat16) for name in ("query", "key", "value")}
    how = {"dropout_p": 0.2, "is_causal": True, "scale": None}
    bias, debug = {"attn_bias": None}, {"return_debug_mask": False}
    given = {
        "flash": {**rows, **how, **debug},
        "cudnn": {**rows, **how, **debug, **bias, "compute_log_sumexp": True},
        "efficient": {**rows, **how, **bias, "compute_log_sumexp": True},
    }[kind]
    overload = f"aten::_scaled_dot_product_{kind}_attention"
    out, lse, *rest = references.answer(overload, given, (1, 2))
    left = {"out": out, "logsumexp": lse}
    left |= dict(zip(("philox_seed", "philox_offset"), rest[:2] if kind == "efficient" else rest[4:6], strict=True))
    if kind == "efficient":
        left |= {"grad_out_": out, "grad_input_mask": [True, True, True, False]}
    else:
        left |= {"grad_out": out, "cum_seq_q": None, "cum_seq_k": None, "max_q": 1024, "max_k": 1024}
    kept = rows | how | (bias if kind != "flash" else {})
    return case_of_values(overload, **given), case_of_values(f"{overload}_backward", **kept, **left)


@pytest.mark.parametrize(
    ("kind", "dim", "platform"),
    [
        ("flash", 64, "hip"),
        *(
            pytest.param(*more, "cuda", marks=pytest.mark.sweep)
            for more in (("efficient", 128), ("cudnn", 128), ("flash", 64), ("flash", 128))
        ),
        *(
            pytest.param(*more, 128, "hip", marks=pytest.mark.sweep)
            for more in (("efficient",), ("cudnn",), ("flash",))
        ),
    ],
)
def test_attention_compiles(kind, dim, platform, tmp_path):
    library = packaged()
    found = [(library.match(case.overload), case) for case in attention(kind, dim)]
    jobs = [Job(m.plan, m.kernel, (case,), off=frozenset({"run"})) for m, case in found]
    with judging(tmp_path / "v.sqlite", platform, cache=compiled()) as judge:
        verdicts = judge.judge(jobs)
    failed = {o: v.detail for (o, _), v in verdicts.items() if v.outcome is not Outcome.PASS}
    assert failed == {} and len(verdicts) == 2
