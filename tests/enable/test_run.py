"""`enable run`: training on device sim with the library's kernels, beside the CPU."""

import json
import shutil
from types import SimpleNamespace

import pytest
import torch
from shared import packaged, without

from capture import sim
from enable.train.calls import Calls
from enable.train.rounding import Truncating
from enable.train.step_time import kernel_names, share
from enable.train.training_run import EPS, MARGIN, Comparison, Recipe, Step, tolerances, train
from enable.workspace import Workspace
from generate.kernel_library import KERNELS
from traces.store import Trace
from verify import platforms
from verify.judging.verdicts import Identity
from verify.outcome import Outcome, Verdict

SMALL = ["nanogpt", "--batch", "2", "--optimizer", "sgd", "--unverified"]
SMALL += [w for s in ("n_layer=1", "n_embd=16", "n_head=2", "block_size=8") for w in ("--set", s)]
GPT2 = ["n_layer=2", "n_embd=16", "n_head=2", "vocab_size=32", "n_positions=8", "bos_token_id=0", "eos_token_id=0"]


@pytest.fixture
def library(tmp_path):
    """A copy of the packaged kernels, to be changed."""
    return shutil.copytree(KERNELS, tmp_path / "library")


def test_nanogpt_trains_on_kernels_alone(enable):
    status, out, _ = enable("run", *SMALL, "--steps", "2", "--compare", "--json")
    found = json.loads(out)
    assert status == 0 and found["passed"] and found["fallbacks"] == {} and found["stopped"] is None
    assert len(found["loss"]) == len(found["reference_loss"]) == found["steps"] == 2
    for kind in ("loss", "gradient_norm"):
        allowed = found["tolerance" if kind == "loss" else "gradient_norm_tolerance"]
        for value, reference, tolerance in zip(found[kind], found[f"reference_{kind}"], allowed, strict=True):
            assert abs(value - reference) <= tolerance < 1e-4 * reference
    assert found["loss"][0] != found["loss"][1]
    assert found["served"]["aten::mm"] == {"calls": 30, "kernel": "generate/kernels/matmul/mm.py", "unjudged": {}}


def test_a_trace_of_the_device_has_the_overloads_that_a_run_asks_for(enable, tmp_path):
    words = [w for w in SMALL if w != "--unverified"]
    status, out, err = enable("capture", *words, "--device", "sim", "--json")
    assert status == 0, err
    signatures = Trace.open(tmp_path / "workspace/traces/nanogpt.trace").signatures.values()
    _, ran, _ = enable("run", *SMALL, "--json")
    served = json.loads(ran)["served"]
    assert {s.overload for s in signatures if s.kind == "compute"} == served.keys()
    calls = sum(s.calls for s in signatures if s.kind == "compute")
    assert calls == sum(row["calls"] for row in served.values())
    assert json.loads(out)["losses"] == pytest.approx(json.loads(ran)["loss"], rel=1e-6)


def test_an_operator_without_a_kernel_stops_the_run(enable, library):
    (library / "pointwise/gelu.py").unlink()
    words = ("run", *SMALL, "--library", library, "--json")
    status, out, err = enable(*words)
    assert status == 1 and json.loads(out)["steps"] == 0 and not json.loads(out)["passed"]
    last = err.splitlines()[-1]
    assert last.startswith("enable: aten::gelu: no kernel; write one: enable --workspace "), last
    assert f" refine nanogpt --op aten::gelu --llm manual --library {library}; or pass --fallback cpu" in last
    status, out, _ = enable(*words, "--fallback", "cpu")
    assert status == 0 and json.loads(out)["fallbacks"] == {"aten::gelu": {"calls": 1, "reason": "no kernel"}}


def test_in_backward_too(enable, library):
    (library / "pointwise/gelu_backward.py").unlink()
    status, _, err = enable("run", *SMALL, "--library", library)
    assert status == 1 and err.splitlines()[-1].startswith("enable: aten::gelu_backward: no kernel; write one:")


def test_a_kernel_that_is_wrong_is_seen(enable, library):
    kernel = library / "pointwise/gelu_backward.py"
    source = kernel.read_text()
    assert source.count("0.5 * (1 + tl.erf") == 1
    kernel.write_text(source.replace("0.5 * (1 + tl.erf", "0.5001 * (1 + tl.erf"))
    status, out, _ = enable("run", *SMALL, "--library", library, "--steps", "2", "--compare")
    assert status == 1 and "DIFFER in 2 steps" in out
    first, second = (line.split() for line in out.splitlines()[1:3])
    assert first[-1] == second[-1] == "DIFFERS"


def test_a_kernel_that_breaks_is_named(enable, library):
    kernel = library / "pointwise/gelu.py"
    kernel.write_text(kernel.read_text().replace("self, out=out)", "self.select(99, 0), out=out)"))
    status, _, err = enable("run", *SMALL, "--library", library)
    assert status == 1
    declined = "enable: aten::gelu: its wrapper takes no such arguments: Dimension out of range"
    assert err.splitlines()[-1].startswith(declined)


def test_kernels_have_to_be_verified(enable, tmp_path):
    words = [w for w in ("run", *SMALL) if w != "--unverified"]
    status, _, err = enable(*words)
    assert status == 2 and " coverage nanogpt; or pass --unverified" in err and err.count("\n") == 1
    keep_verdict(Workspace(tmp_path / "workspace"), "aten::arange.start", "")
    status, _, err = enable(*words)
    assert status == 1
    last = err.splitlines()[-1]
    assert last.startswith("enable: aten::embedding: not verified; verify it: enable --workspace ")
    assert " capture nanogpt --batch 2 " in last and " --device sim && enable --workspace " in last
    assert last.endswith(" coverage nanogpt; or pass --unverified")


def keep_verdict(workspace, overload, dtypes):
    """As if one case had passed."""
    match = packaged().match(overload)
    store = workspace.verdicts()
    identity = Identity(match.kernels, overload, "1", platforms.load("sim"))
    store.put(identity, Verdict("1", Outcome.PASS, dtypes=dtypes), 0.1)
    store.close()


def test_a_model_of_transformers_names_what_it_lacks(enable, tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setenv("ENABLE_LIBRARY", str(without(GPT2_LACKS, tmp_path / "lacking")))
    settings = [w for s in (*GPT2, "sequence=4") for w in ("--set", s)]
    words = ("--fallback", "cpu", "--unverified", "--compare", "--optimizer", "sgd")
    status, out, err = enable("run", "transformers:GPT2LMHeadModel", *settings, *words, "--json")
    found = json.loads(out)
    assert status == 0 and found["steps"] == 1, err
    assert found["fallbacks"].keys() == GPT2_LACKS
    assert {row["reason"] for row in found["fallbacks"].values()} == {"no kernel"}
    assert found["served"]["aten::addmm"]["calls"] == 8


GPT2_LACKS = {
    "aten::constant_pad_nd",
    "aten::eq.Scalar",
    "aten::tanh",
    "aten::tanh_backward",
}


SPARSE = """
import torch

def step(device="cpu", optimizer="SGD"):
    torch.manual_seed(0)
    bags = torch.nn.EmbeddingBag(9, 4, mode="sum", sparse=True).to(device)
    batch = torch.tensor([1, 3, 3, 8, 0]).to(device), torch.tensor([0, 2, 2]).to(device)
    loss = lambda model, batch: model(*batch).square().sum()
    return bags, batch, loss, getattr(torch.optim, optimizer)(bags.parameters(), 0.1)
"""


def assert_served_sparse_gradients(answer, coalesced):
    """By a run that may fall back on the CPU."""
    status, out, err = answer
    found = json.loads(out)
    assert status == 0 and found["passed"], err
    takers = {"aten::clone", "aten::add_.Tensor", "aten::_coalesce", "aten::sparse_mask"}
    assert not takers & found["fallbacks"].keys() and "aten::add_.Tensor" in found["served"]
    assert ("aten::_coalesce" in found["served"]) == coalesced


FALLING_BACK = ("--fallback", "cpu", "--unverified", "--compare", "--json")


@pytest.mark.parametrize("optimizer", ["SGD", "Adagrad"])
def test_gradients_are_sparse(enable, tmp_path, monkeypatch, optimizer):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bags.py").write_text(SPARSE)
    answer = enable("run", "bags:step", "--set", f"optimizer={optimizer}", *FALLING_BACK)
    assert_served_sparse_gradients(answer, optimizer == "Adagrad")


@pytest.mark.sweep
@pytest.mark.parametrize("optimizer", ["sgd", "rowwise-adagrad", "adagrad"])
def test_dlrm_has_sparse_gradients(enable, optimizer):
    settings = ("--batch", "4", "--set", "rows=9", "--set", "tables=2", "--set", "lookups=2")
    answer = enable("run", "dlrm", *settings, "--optimizer", optimizer, *FALLING_BACK)
    assert_served_sparse_gradients(answer, optimizer != "sgd")
    assert "aten::clone" in json.loads(answer[1])["served"]


@pytest.mark.parametrize(
    "words, message",
    [
        (["--device", "tpu"], "unknown device 'tpu', did you mean xpu or cpu? choose from cuda, xpu, sim"),
        (["--fallback", "gpu"], "unknown fallback 'gpu'; choose from cpu"),
        (["--device", "cuda", "--fallback", "cpu"], "--fallback is for sim"),
        (["--set", "width"], "'width' is not NAME=VALUE"),
        (["--set", "width=3"], "nanogpt has no setting 'width'"),
        (["--steps", "0"], "--steps '0' is too small; use 1 or more"),
    ],
)
def test_bad_input_is_one_line(enable, words, message):
    status, out, err = enable("run", *SMALL, *words)
    assert status == 2 and message in err and err.count("\n") == 1 and not out.strip()


def test_a_factory_builds_on_the_device_that_it_is_told(enable, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_step.py").write_text(OWN)
    status, out, err = enable("run", "own_step:make", "--fallback", "cpu", "--unverified", "--compare", "--json")
    assert status == 0 and json.loads(out)["gradient_norm"][0] > 0, err
    status, _, err = enable("run", "own_step:stays", "--fallback", "cpu", "--unverified")
    assert status == 2 and "was built on cpu, not on sim" in err


OWN = """
import torch

def make(device="cpu"):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2).to(device)
    batch = torch.ones(4, 3).to(device)
    return model, batch, lambda model, batch: model(batch).square().mean(), torch.optim.SGD(model.parameters(), 0.1)

def stays(device="cpu"):
    return make()
"""


def test_calls_of_a_device_are_counted_without_views_and_transfers():
    x = torch.ones(3)
    with sim.executing(sim.on_cpu), Calls("sim") as seen:
        y = x.to("sim").view(3, 1) + 1
        y.copy_(y.clone())
        (x + y.cpu()).to("sim")
    assert seen.calls == {"aten::add.Tensor": 1, "aten::clone": 1, "aten::copy_": 1}


def test_truncation_takes_less_than_the_last_bit():
    x = torch.randn(1000)
    with Truncating(1):
        y, z, view, made = x * 1, x.clone(), x[1:], torch.arange(3)
        z.mul_(1)
        both = torch._foreach_mul([x], 1.0)[0]
    for result in (y, both):
        loss = (x.double() - result.double()) / x.double()
        assert loss.min() >= 0 and loss.mean() > 0.2 * EPS and loss.max() <= 1.5 * EPS
    assert not torch.equal(z, x) and torch.equal(view, x[1:]) and made.tolist() == [0, 1, 2]
    with Truncating(1):
        assert torch.equal(x * 1, y)
    assert torch.equal(x * 1, x)


def test_what_is_allowed_grows_with_what_rounding_did():
    assert tolerances([1.0, 2.0], [1.0, 2.0]) == [MARGIN * EPS, MARGIN * 2 * EPS]
    assert tolerances([1.0, 2.0, 1.0], [1.5, 2.0, 1.0], [1.0, 1.0, 1.0]) == [MARGIN * 0.5, MARGIN, MARGIN]
    found = Comparison([1.0, float("nan")], [0.1, 0.1], [2.0, None], [0.1, None])
    assert found.agrees(0, Step(1.05, 2.05, 0)) and not found.agrees(0, Step(1.05, 2.2, 0))
    assert not found.agrees(0, Step(float("nan"), 2.0, 0))
    assert found.agrees(1, Step(float("nan"), 1.0, 0)) and not found.agrees(1, Step(1.0, None, 0))


def test_the_norm_is_taken_before_clipping():
    recipe = Recipe("nanogpt", dict(n_layer="1", n_embd="16", n_head="2", block_size="8"), batch=2, seed=3)
    steps = [next(train(Recipe(**{**vars(recipe), "settings": s}).build("cpu"), 1)) for s in _clips(recipe.settings)]
    assert steps[0].gradient_norm == steps[1].gradient_norm > 0.01 and steps[0].loss == steps[1].loss


def _clips(settings):
    return {**settings, "grad_clip": "0"}, {**settings, "grad_clip": "0.01"}


def test_losses_are_drawn(enable, tmp_path):
    pytest.importorskip("matplotlib")
    figure = tmp_path / "losses.svg"
    status, out, _ = enable("run", *SMALL, "--steps", "2", "--plot", figure)
    assert status == 0 and "2 of 2 steps" in out
    assert "<svg" in figure.read_text() and "kernels on sim" in figure.read_text()


@pytest.mark.parametrize("place", ["losses.txt", "nodir/losses.svg", "."])
def test_what_cannot_be_drawn_is_told_before_the_training(enable, tmp_path, place):
    pytest.importorskip("matplotlib")
    status, out, err = enable("run", *SMALL, "--plot", tmp_path / place)
    assert status == 2 and not out and err.count("\n") == 1 and ".svg or .png" in err


def test_the_share_of_the_library_is_that_of_its_kernels():
    gpu, cpu = torch._C._autograd.DeviceType.CUDA, torch._C._autograd.DeviceType.CPU
    events = [
        SimpleNamespace(name=lambda n=n: n, duration_ns=lambda t=t: t, device_type=lambda d=d: d)
        for n, t, d in [
            ("matmul_kernel", 30, gpu),
            ("ampere_sgemm", 10, gpu),
            ("Memcpy HtoD", 100, gpu),
            ("matmul_kernel", 500, cpu),
        ]
    ]
    assert share(events, frozenset({"matmul_kernel"})) == 0.75
    assert share([], frozenset()) == 0.0
    assert {"matmul_kernel", "elementwise_kernel"} <= kernel_names(packaged())
