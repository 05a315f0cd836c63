"""Known bad kernels are rejected, for a reason that fits; unusual honest ones pass; nothing is left behind.

All of them: pytest -m "sweep or not sweep" tests/verify/test_corpus.py
"""

import os
import re
import tempfile
from pathlib import Path

import pytest
import torch
from corpus import BAD as TABLES
from corpus import CORPUS, HONEST, bad_kernels, main
from shared import sampled

from enable.cover.verification import VerifyRequest
from enable.cover.verifier import Verifier, corpus_files
from verify.cases.case import case_of_values
from verify.contract.derive import Plan
from verify.judging.candidate import read_candidate
from verify.judging.judge import Job
from verify.lint import load_profile
from verify.outcome import Outcome

BAD = bad_kernels()
PUBLIC = "# public:"  # bad ones that CI judges; most of them lint refuses
ALSO = (  # the cheapest of a family, or of a rule of a layer; `enable verify --report` judges all
    *("add_ignores_alpha", "exp_autotune_last_of_six_loses_nan", "exp_false_max_constancy", "exp_is_cuda_chooses"),
    *("exp_short_series", "exp_text_of_a_list_of_kernels", "gelu_autograd_function", "isnan_by_integer_cast"),
    *("mean_scratch_never_cleared", "mul_endless_recursion", "relu_grid_grows_in_z", "signbit_writes_false"),
    *("square_autotuned_in_place", "sum_of_masked_off_lanes", "tile_by_expansion"),
)
UNUSUAL = (  # the cheapest of each way to be unusual
    *("abs_waits_for_its_lanes", "cummax_pair_scan", "exp_scary_words", "exp_settings_of_the_gpu", "full_factory"),
    *("gelu_two_kernels_string_dispatch", "hardswish_helper_chain", "isnan_self_compare", "mm_split_k_atomic"),
    *("positive_returns_input", "relu_zero_init_masked_store", "silu_autotuned", "t_pure_view"),
    *("tanh_of_the_device_library",),
)
THOROUGH, QUICK = (
    VerifyRequest(seed=1),
    VerifyRequest(seed=1, limit=12),
)  # a bad kernel is judged until its first failure
CANARIES = Path(tempfile.gettempdir()) / "enable-canary"


@pytest.fixture(scope="module")
def verifier(tmp_path_factory):
    home = tmp_path_factory.mktemp("corpus")
    platform = home / "soon.yaml"
    platform.write_text(
        "base: sim\ncompile_seconds: 30\nexecute_seconds: 60\n"
    )  # what is endless is waited for so long
    before = Path.cwd()
    os.chdir(home)  # where canaries would be written
    try:
        with Verifier(home / ".enable", None, str(platform), "triton-cuda", "full") as found:
            yield found
    finally:
        os.chdir(before)


def header(kernel, name):
    lines = BAD[kernel].splitlines()[:12]
    found = [line.partition(":")[2] for line in lines if line.startswith(f"# {name}:")]
    return [word.strip() for word in found[0].replace(",", "|").split("|")] if found else []


def some_bad():
    return sampled(BAD, [name for name, text in BAD.items() if name in ALSO or PUBLIC in text])


def some_honest():
    return sampled(HONEST, [p for p in HONEST if p.stem in UNUSUAL])


def test_the_corpus_is_large_and_of_every_family():
    assert len(BAD) >= 80 and len(HONEST) >= 30
    families = {family[0] for name in BAD for family in header(name, "family")}
    assert families >= set("ABCDEFGHIJKLMNOPQRST")
    assert BAD.keys() >= {*ALSO} and {path.stem for path in HONEST} >= {*UNUSUAL}


def test_the_tables_name_each_kernel_once_and_use_each_part():
    tables = "\n".join(path.read_text() for path in CORPUS.glob("bad/*.txt"))
    names = re.findall(r"^# (?:part|name|public): (\S+)", tables, re.MULTILINE)
    assert sorted(names) == sorted(TABLES.entries)
    used = {name for entry in TABLES.entries.values() for name in entry.fields.get("base", "").split(", ")}
    assert TABLES.entries.keys() - BAD.keys() - used == set()


def test_the_corpus_can_be_written_as_files(tmp_path):
    main(tmp_path / "corpus")
    files = corpus_files(tmp_path / "corpus")
    assert {path.stem: path.read_text() for path in files["bad"]} == BAD
    assert [path.name for path in files["honest"]] == [path.name for path in HONEST]


@pytest.mark.parametrize("name", some_bad())
def test_a_bad_kernel_is_rejected(verifier, tmp_path, name):
    path = tmp_path / f"{name}.py"
    path.write_text(BAD[name])
    found = verifier.verify(str(path), None, THOROUGH)
    assert found.outcome not in ("PASS", "SKIPPED"), found
    expected = header(name, "outcome")
    assert not expected or found.outcome in expected or found.layer == "lint", found
    assert not list(Path.cwd().rglob("canary*")) and not CANARIES.exists()


@pytest.mark.parametrize("path", some_honest(), ids=lambda p: p.stem)
def test_an_honest_kernel_passes(verifier, path):
    found = verifier.verify(str(path), None, QUICK)
    assert found.outcome == "PASS" and found.cases > 0, found


def test_computing_for_nothing_is_too_costly(judge):
    """For one case: where the whole file is judged, some that come later take all the time there is."""
    text = BAD["relu_computes_for_nothing"].replace("40000", "100000")
    kernel = read_candidate(text, Path("relu.py"), load_profile("triton-cuda"), "aten::relu").kernel
    case = case_of_values("aten::relu", self=torch.linspace(-4, 4, 300))
    (verdict,) = judge.judge([Job(Plan("aten::relu", "aten::relu"), kernel, (case,))]).values()
    assert (verdict.outcome, verdict.layer, verdict.rule) == (Outcome.TIMEOUT, "cost", "time"), verdict
