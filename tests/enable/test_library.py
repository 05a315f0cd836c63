"""Registration: on CPU tensors, where a GPU is absent, and on `sim`."""

import itertools
import os
import shutil
import subprocess
import sys
import warnings
from collections import Counter
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from shared import sampled
from warm import python

from enable import library
from enable.library import select
from enable.serve import decisions
from enable.serve.arguments import ELSEWHERE
from enable.serve.decisions import LAWLESS, NO_KERNEL, UNPAIRED
from enable.serve.server import Server
from enable.workspace import Workspace
from generate.kernel_library import KERNELS, Library
from traces import UserError
from traces.overloads import name_of, resolve
from verify import platforms
from verify.cases.kinds import kind_of
from verify.judging.conditions import Conditions
from verify.judging.verdicts import Identity
from verify.outcome import Outcome, Verdict

EXP = ["aten::exp"]
FULL = Conditions()
VECTOR = kind_of({"self": torch.ones(3)})
ATEN_EXP = torch.exp(torch.linspace(-3, 3, 50))


def tables(names):
    """The dispatcher's own account of some operators: every kernel registered, and which is called."""
    return [(torch._C._dispatch_dump(n), torch._C._dispatch_dump_table(n)) for n in names]


def on_cpu(ops, **options):
    return library.use("cpu", ops=ops, **{"unverified": True, **options})


@pytest.fixture
def keep(tmp_path):
    """A function that keeps a verdict on a kernel of the library, as if it had been judged."""

    def put(overload, dtypes, outcome=Outcome.PASS, sha256=None, conditions=FULL, kind=VECTOR):
        store = Workspace(tmp_path).verdicts()
        match = Library(KERNELS).match(overload)
        kernels = (match.kernels[0], sha256, *match.kernels[2:]) if sha256 else match.kernels
        case = f"{overload} {dtypes} {outcome} {conditions} {kind}"
        identity = Identity(kernels, overload, case, platforms.load("sim"), conditions)
        store.put(identity, Verdict(case, outcome, dtypes=dtypes, signature=case, kind=kind), 0.1)
        store.close()

    return put


def test_a_kernel_answers_and_undo_is_exact():
    before = tables(EXP)
    x = torch.linspace(-3, 3, 50)
    with warnings.catch_warnings(), on_cpu(EXP) as registration:
        warnings.simplefilter("error")
        assert tables(EXP) != before
        torch.testing.assert_close(x.exp(), ATEN_EXP)
        assert registration.counts.served == Counter({"aten::exp": 1})
        assert registration.counts.kernels == Counter({"generate/kernels/pointwise/exp.py": 1})
    assert tables(EXP) == before
    x.exp()
    assert registration.counts.served["aten::exp"] == 1


@pytest.mark.parametrize(
    "ops, work",
    [
        (["aten::add.Tensor"], lambda x, y: torch.add(x, y, alpha=3)),
        (["aten::add.Tensor"], lambda x, y: x + 2),
        (["aten::mul_.Tensor"], lambda x, y: x.clone().mul_(y)),
        (["aten::mul.out"], lambda x, y: torch.mul(x, y, out=torch.empty(0))),
        (["aten::_foreach_add.List"], lambda x, y: torch.stack(torch._foreach_add([x, y], [y, x], alpha=2))),
        (["aten::mm"], lambda x, y: x @ y.t()),
        (["aten::addmm"], lambda x, y: torch.nn.functional.linear(x, y, x.sum(1)[:4])),
        (["aten::_to_copy"], lambda x, y: x.to(torch.bfloat16)),
        (["aten::zeros"], lambda x, y: torch.zeros(2, 3)),
        (["aten::sum.dim_IntList"], lambda x, y: x.sum(1, keepdim=True)),
        (["aten::native_layer_norm"], lambda x, y: torch.nn.functional.layer_norm(x, (5,), y[0], y[1])),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_operators_and_derived_ones(ops, work):
    x, y = torch.randn(4, 5), torch.randn(4, 5)
    expected = work(x, y)
    with on_cpu(ops) as registration:
        got = work(x, y)
    torch.testing.assert_close(got, expected)
    assert registration.counts.served == Counter(ops) and not registration.counts.unserved


def test_autograd_works_above_a_kernel():
    def gradients():
        x = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
        w = torch.linspace(0, 1, 8).view(4, 2).requires_grad_()
        loss = torch.mm(x.exp(), w).mul_(2).sum()
        loss.backward()
        return x.grad, w.grad

    expected = gradients()
    ops = ["aten::exp", "aten::mm", "aten::mul_.Tensor", "aten::mul.Tensor", "aten::sum"]
    with on_cpu(ops) as registration:
        got = gradients()
    torch.testing.assert_close(got, expected)
    assert set(registration.counts.served) == set(ops) and registration.counts.served["aten::mm"] == 3
    assert not registration.counts.unserved


def test_everything_at_once_trains_and_leaves_nothing():
    """All that the library serves, under a model with its optimizer: the kernels' own work is not served again."""
    names = [n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::")]

    torch.manual_seed(0)
    start = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
    x, target = torch.randn(5, 6), torch.tensor([0, 1, 2, 1, 0])

    def train():
        model = deepcopy(start)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        for _ in range(2):
            loss = torch.nn.functional.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    expected, before = train(), tables(names)
    with on_cpu(None) as registration:
        got = train()
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    assert {"aten::addmm", "aten::gelu_backward", "aten::_foreach_lerp_.Scalar"} <= set(registration.counts.served)
    assert tables(names) == before


def test_a_dtype_that_is_not_listed_runs_natively():
    x = torch.linspace(-3, 3, 50, dtype=torch.complex64)
    with on_cpu(EXP) as registration:
        assert x.exp().dtype == torch.complex64 and torch.equal(x.exp(), torch.exp(x))
    assert registration.counts.unserved == {"aten::exp": Counter({"the kernel's DTYPES do not list complex64": 3})}
    assert not registration.counts.served


def test_only_dtypes_whose_every_verdict_passes_are_served(keep, tmp_path):
    keep("aten::exp", "float32")
    keep("aten::exp", "bfloat16,float32")
    keep("aten::exp", "bfloat16", Outcome.WRONG)
    x = torch.ones(3)
    with library.use("cpu", ops=EXP, workspace=tmp_path) as registration:
        x.exp(), x.half().exp(), x.bfloat16().exp(), x.int().exp()
    assert registration.counts.served == Counter({"aten::exp": 1})
    assert registration.counts.unserved["aten::exp"] == {
        "not verified for float16": 1,
        "its kernel failed for bfloat16: WRONG in 1 of 3 judged cases: ": 1,
        "not verified without floating dtypes": 1,
    }
    keep("aten::exp", "")
    with library.use("cpu", ops=EXP, workspace=tmp_path) as registration:
        x.int().exp()
    assert registration.counts.served == Counter({"aten::exp": 1})


def test_calls_unlike_all_that_was_judged_are_counted_and_can_be_refused(keep, tmp_path):
    """Judged was a contiguous vector; asked for are one, a matrix, and a vector with gaps."""
    keep("aten::exp", "float32")
    calls = (torch.ones(7), torch.ones(2, 3), torch.ones(8)[::2])
    news = Counter({"no case with self float32 of 2": 1, "no case with self not contiguous": 1})
    with library.use("cpu", ops=EXP, workspace=tmp_path) as registration:
        for x in calls:
            x.exp()
    assert registration.counts.served["aten::exp"] == 3 and registration.counts.unjudged == {"aten::exp": news}
    with library.use("cpu", ops=EXP, workspace=tmp_path, only="judged") as registration:
        for x in calls:
            torch.testing.assert_close(x.exp(), torch.full_like(x, torch.e))
    reasons = Counter({f"never judged on such a call: {new}": n for new, n in news.items()})
    assert registration.counts.served["aten::exp"] == 1 and registration.counts.unserved["aten::exp"] == reasons
    assert not registration.counts.unjudged
    keep("aten::exp", "float32", kind=kind_of({"self": torch.ones(2, 3)}))
    with library.use("cpu", ops=EXP, workspace=tmp_path, only="judged") as registration:
        calls[1].exp()
    assert registration.counts.served["aten::exp"] == 1


def test_verdicts_of_others_do_not_count(keep, tmp_path):
    """Of another kernel file, of a judge with layers off, of the operator that an overload derives from."""
    keep("aten::exp", "float32", sha256="0" * 64)
    keep("aten::exp", "float32", conditions=Conditions(off=frozenset({"compare"})))
    keep("aten::exp_", "float32")
    with pytest.raises(UserError, match=r"^aten::exp: its kernel is not verified in .*: enable verify aten::exp; or"):
        library.register("cpu", ops=EXP, workspace=tmp_path)
    with library.use("cpu", workspace=tmp_path) as registration:
        torch.ones(3).exp_()
    assert registration.counts.served == Counter({"aten::exp_": 1})
    assert registration.left_out["aten::exp"] == "not verified"


def test_what_the_judge_says_is_what_registration_reads(tmp_path):
    """From `enable verify` to a served call."""
    command = ["-m", "enable", "--workspace", tmp_path, "verify", "aten::neg", "--cases", "opinfo"]
    told = python(*command, cwd=KERNELS.parents[1], timeout=200)
    assert told.returncode == 0, told.stdout + told.stderr
    with library.use("cpu", ops=["aten::neg"], workspace=tmp_path) as registration:
        torch.testing.assert_close(-ATEN_EXP, torch.neg(ATEN_EXP.to(torch.complex128)).real.float())
    assert registration.counts.served == Counter({"aten::neg": 1})
    assert registration.counts.unserved["aten::neg"] == {"the kernel's DTYPES do not list complex128": 1}


def test_registrations_nest_and_are_undone_in_order(tmp_path):
    layer = tmp_path / "pointwise"
    layer.mkdir()
    source = (KERNELS / "pointwise/exp.py").read_text()
    (layer / "exp.py").write_text(source.replace("tl.exp(x)", "x * 0 + 42"))
    other = Library(tmp_path, KERNELS)
    x, before = torch.ones(3), tables(EXP)
    with on_cpu(["aten::exp", "aten::neg"]) as outer:
        between = tables(EXP)
        with on_cpu(EXP, library=other) as inner:
            assert x.exp().tolist() == [42.0] * 3
            x.neg()
            with pytest.raises(UserError, match="later registration on cpu is in force"):
                outer.undo()
            assert x.exp().tolist() == [42.0] * 3
        assert tables(EXP) == between
        assert x.exp()[0] != 42
    assert tables(EXP) == before
    assert inner.counts.served == Counter({"aten::exp": 2})
    assert outer.counts.served == Counter({"aten::exp": 1, "aten::neg": 1})


def test_a_ragged_matrix_whose_strides_are_both_1():
    """As of a convolution's windows: which way it lies is anybody's guess, and the two operands have to agree on K."""
    windows = torch.linspace(-1, 1, 4096 + 130).unfold(0, 130, 1)[:4096]
    behind = torch.full((150, 256), torch.nan)
    behind[:130] = torch.linspace(-2, 3, 130 * 256).view(130, 256)
    expected = windows.contiguous() @ behind[:130]
    with on_cpu(["aten::mm"]) as registration:
        torch.testing.assert_close(windows @ behind[:130], expected, rtol=1e-4, atol=1e-4)
    assert registration.counts.served == Counter({"aten::mm": 1})


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_what_a_wrapper_takes_no_arguments_of_is_not_served(tmp_path, device):
    layer = tmp_path / "pointwise"
    layer.mkdir()
    source = (KERNELS / "pointwise/exp.py").read_text()
    first, name = source.index("def wrapper"), source[source.index("def wrapper(") + 12 :].partition(",")[0]
    body = source.index("\n", first) + 1
    refused = f"    if {name}.dim() == 2:\n        raise NotImplementedError('matrices')\n"
    (layer / "exp.py").write_text(source[:body] + refused + source[body:])
    x, options = torch.rand(2, 2).to(device), {"fallback": "cpu"} if device == "sim" else {}
    with library.use(device, ops=EXP, library=Library(tmp_path, KERNELS), unverified=True, **options) as registration:
        answers = [x.exp(), x.exp(), x[0].exp()]
    torch.testing.assert_close([a.cpu() for a in answers], [x.cpu().exp(), x.cpu().exp(), x[0].cpu().exp()])
    assert registration.counts.served == Counter({"aten::exp": 1})
    assert sum(registration.counts.kernels.values()) == 1
    assert registration.counts.unserved["aten::exp"] == {"its wrapper takes no such arguments: matrices": 2}


def test_what_the_inner_one_does_not_serve_the_outer_one_is_asked_for(keep, tmp_path):
    keep("aten::exp", "float16")
    with on_cpu(EXP) as outer, library.use("cpu", ops=EXP, workspace=tmp_path) as inner:
        torch.ones(2).exp(), torch.ones(2).half().exp()
    assert outer.counts.served == inner.counts.served == Counter({"aten::exp": 1})
    assert inner.counts.unserved["aten::exp"].total() == 1


def test_a_block_that_is_open_as_python_exits_is_undone_in_silence(tmp_path):
    code = (
        "import torch, enablekit\n"
        "block = enablekit.use('sim', ops=['aten::relu'], unverified=True)\n"
        "block.__enter__()\n"
        "print(torch.ones(3).to('sim').relu().tolist())"
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=100
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("[1.0, 1.0, 1.0]\n", "", 0)


def test_an_exception_undoes_and_undoing_twice_is_nothing():
    before = tables(EXP)
    with pytest.raises(ZeroDivisionError), on_cpu(EXP):
        raise ZeroDivisionError
    assert tables(EXP) == before
    registration = library.register("cpu", ops=EXP, unverified=True)
    registration.undo()
    registration.undo()
    assert tables(EXP) == before


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"device": "tpu"}, "unknown device 'tpu', did you mean xpu or cpu. choose from cuda, xpu, sim, cpu"),
        ({"device": "cpu", "ops": ["aten::nothing"]}, "no such operator"),
        ({"device": "cpu", "ops": ["expp"]}, "aten::expp: .*no such operator"),
        ({"device": "cpu", "ops": ["aten::exp.Tensor"]}, "no such overload; aten::exp has default"),
        (
            {"device": "cpu", "ops": ["aten::_dirichlet_grad"]},
            "no kernel for it; write one: enable refine --op aten::_dirichlet_grad",
        ),
        ({"device": "cpu", "ops": EXP}, "not verified in .*; verify it: enable verify aten::exp"),
        ({"device": "cpu"}, "no kernel is verified in .*; verify it: enable verify --all; or use unverified kernels"),
        ({"device": "cpu", "fallback": "cpu"}, "choose cpu, for sim or a chip"),
        ({"device": "sim", "fallback": "cuda"}, "choose cpu, for sim or a chip"),
    ],
)
def test_what_cannot_be_registered_is_refused_in_one_line(arguments, message, tmp_path):
    before = tables(EXP)
    with pytest.raises(UserError, match=message) as told:
        library.register(**arguments, workspace=tmp_path / "none")
    assert "\n" not in str(told.value) and not (tmp_path / "none").exists()
    assert tables(EXP) == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what is said where there is none")
def test_cuda_is_refused_where_there_is_none():
    with pytest.raises(UserError, match="sees no cuda device"):
        library.register("cuda", unverified=True)


def test_an_operator_that_autograd_takes_apart_is_refused(tmp_path):
    (tmp_path / "pointwise").mkdir()
    source = (KERNELS / "pointwise/exp.py").read_text().replace('("aten::exp",)', '("aten::matmul",)')
    (tmp_path / "pointwise" / "matmul.py").write_text(source)
    with pytest.raises(UserError, match="^aten::matmul: PyTorch makes it of other operators"):
        library.register("cpu", ops=["aten::matmul"], unverified=True, library=Library(tmp_path))


def test_compiled_triton_is_refused_for_host_memory():
    code = (
        "import triton\nfrom enable import library\nfrom traces import UserError\n"
        "try:\n    library.register('cpu', unverified=True)\nexcept UserError as error:\n    print(error)"
    )
    paths = os.pathsep.join([str(KERNELS.parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "TRITON_INTERPRET": "0"}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=100)
    assert told.stdout == "Triton has to interpret kernels: set TRITON_INTERPRET=1 before Python starts\n", told.stderr


def test_on_sim_a_kernel_answers_or_the_call_fails(keep, tmp_path):
    keep("aten::exp", "float32")
    x = torch.linspace(-3, 3, 50)
    with library.use("sim", workspace=tmp_path) as registration:
        y = x.to("sim").requires_grad_()
        torch.testing.assert_close(y.exp().cpu(), ATEN_EXP)
        with pytest.raises(NotImplementedError, match="^aten::_dirichlet_grad: device sim has no kernel"):
            torch._dirichlet_grad(y, y, y)
        with pytest.raises(NotImplementedError, match="^aten::neg: .* may not use its kernel: not verified; verify it"):
            y.neg()
        half = x.half().to("sim")
        with pytest.raises(NotImplementedError, match="^aten::exp: .*: not verified for float16; verify it: enable ve"):
            half.exp()
    with pytest.raises(NotImplementedError):
        y.exp()
    assert registration.counts.served == Counter({"aten::exp": 1})


def test_on_sim_what_falls_back_is_counted():
    x, target = torch.linspace(-3, 3, 50).view(5, 10), torch.arange(5)
    with library.use("sim", unverified=True, ops=["aten::nll_loss_forward"], fallback="cpu") as registration:
        y, target = x.to("sim").requires_grad_(), target.to("sim")
        loss = torch.nn.functional.nll_loss
        (loss(y, target) * 2 + loss(y.double(), target)).sum().backward()
    assert registration.counts.served == Counter({"aten::nll_loss_forward": 1})
    fallbacks = registration.counts.unserved
    assert fallbacks["aten::nll_loss_forward"] == {"the kernel's DTYPES do not list float64": 1}
    assert fallbacks["aten::sum"] == {NO_KERNEL: 1}


def test_on_sim_registrations_nest():
    x = torch.ones(3).to("sim")
    with (
        library.use("sim", unverified=True, ops=EXP) as outer,
        library.use("sim", unverified=True, ops=["aten::neg"]) as inner,
    ):
        x.exp().neg()
    assert outer.counts.served == Counter(EXP) and inner.counts.served == Counter(["aten::neg"])


@pytest.mark.parametrize(
    "op, args, kwargs",
    [
        (torch.ops.aten.add.Tensor, (torch.ones(2), torch.ones(2, device="meta")), {}),
        (torch.ops.aten._to_copy.default, (torch.ones(2),), {"device": torch.device("meta")}),
        (torch.ops.aten._foreach_add.List, ([torch.ones(2)], [torch.ones(2, device="meta")]), {}),
    ],
)
def test_no_kernel_is_given_what_lies_on_another_device(op, args, kwargs):
    overload = name_of(op)
    server = Server(library.select([overload], unverified=True).entries.get, "cpu")
    assert server.find(op, args, kwargs) is None
    assert server.counts.unserved == {overload: Counter({ELSEWHERE: 1})}


def test_a_kernel_that_changed_is_loaded_anew(tmp_path):
    shutil.copytree(KERNELS, tmp_path / "k", ignore=shutil.ignore_patterns("__pycache__"))
    path = Path(tmp_path / "k/pointwise/neg.py")
    x = torch.ones(2)
    with on_cpu(["aten::neg"], library=Library(tmp_path / "k")):
        assert x.neg().tolist() == [-1.0, -1.0]
    changed = "def wrapper(self, *, out=None):\n    return torch.empty(7)\n"
    path.write_text(path.read_text().replace("def wrapper(", "def older(") + changed)
    with on_cpu(["aten::neg"], library=Library(tmp_path / "k")):
        assert x.neg().shape == (7,)


PROMOTED = [((3,), torch.float64), ((), torch.float16), ((3,), torch.int32), ((), torch.bool)]


@pytest.mark.parametrize(
    ("shape", "dtype"), sampled(itertools.product([(3,), ()], [dtype for _, dtype in PROMOTED]), PROMOTED)
)
def test_numbers_promote_natively_as_ever(shape, dtype):
    """Beside a dtype that no kernel serves, or in the place of the first operand, which no kernel takes."""
    x = torch.ones(shape).to(dtype)
    work = [
        lambda: x + 2,
        lambda: x * 2.1,
        lambda: x.float() + 1j,
        lambda: 2.5 - x.float(),
        lambda: torch.rsub(x.to(torch.int32), 2.5),
        lambda: x.half().clone().mul_(0.1),
        lambda: torch.where(x > 0, 2.0, x),
        lambda: torch.isfinite(x),
        lambda: str(x),
    ]
    expected = [f() for f in work]
    with on_cpu(None, library=Library(KERNELS)):
        got = [f() for f in work]
    torch.testing.assert_close(got[:-1], expected[:-1])
    assert got[-1] == expected[-1]


_REFUSED = [
    (["aten::mm"], lambda x: torch.mm(x, x)),
    (["aten::mm"], lambda x: torch.mm(x, x.double().t())),
    (["aten::add.Tensor"], lambda x: x + x[:, :2]),
    (["aten::mul_.Tensor", "aten::mul.Tensor"], lambda x: x[:1].mul_(x)),
    (["aten::sum.dim_IntList"], lambda x: x.sum(5)),
    (["aten::cat"], lambda x: torch.cat([x, x[:, :1]])),
]


@pytest.mark.parametrize("ops, work", _REFUSED, ids=[ops[0] for ops, _ in _REFUSED])
@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_what_aten_refuses_no_kernel_answers(device, ops, work):
    """A kernel reads past the end of what does not fit, or gives numbers; ATen's own error is what a caller expects."""
    x = torch.ones(2, 3)
    with pytest.raises((RuntimeError, IndexError)) as native:
        work(x)
    with library.use(device, ops=ops, unverified=True) as registration:
        x = x.to(device)
        with pytest.raises(native.type) as served:
            work(x)
        assert not registration.counts.served
    if "device sim has no kernel" not in str(served.value):  # for what the call needs beside the operator
        assert str(served.value) == str(native.value)


def test_a_call_is_decided_once_for_all_that_are_alike(monkeypatch):
    decided = []
    seen = decisions.Seen
    monkeypatch.setattr(decisions, "Seen", lambda *call: decided.append(call) or seen(*call))
    with on_cpu(["aten::add.Tensor"]) as registration:
        for scale in (2.0, 3.0):
            torch.add(torch.rand(3), torch.rand(3), alpha=scale)
        torch.add(torch.rand(4), torch.rand(4))
    assert len(decided) == 2
    assert registration.counts.served == Counter({"aten::add.Tensor": 3})


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
def test_sparse_tensors_reach_kernels_that_take_them():
    x = torch.sparse_coo_tensor(torch.tensor([[2, 0, 2]]), torch.ones(3, 2), (4, 2))
    expected = x.coalesce()
    with library.use(device="cpu", unverified=True) as registration:
        assert torch.equal(x.coalesce().values(), expected.values())
        assert torch.equal(torch.ones(4, 2).add_(x, alpha=2)[2], torch.tensor([5.0, 5.0]))
        assert registration.counts.served["aten::_coalesce"] == registration.counts.served["aten::add_.Tensor"] == 1
        assert (x + x).coalesce().values().sum() == 12
        assert "several sparse tensors" in registration.counts.unserved["aten::add.Tensor"]
        assert (x * 3).coalesce().values().sum() == 18  # by PyTorch


def test_attention_with_dropout_is_served_with_its_backward_or_not_at_all():
    forward = "aten::_scaled_dot_product_efficient_attention"
    entries = select([forward, f"{forward}_backward"], unverified=True).entries
    narrow = replace(entries[f"{forward}_backward"], verified=frozenset({"float16"}))
    q = torch.randn(1, 1, 16, 16)
    for others, whole in (({}, False), ({f"{forward}_backward": narrow}, False), (entries, True)):
        server = Server({forward: entries[forward], **others}.get, "cpu")
        assert server.find(resolve(forward), (q, q, q, None, True, 0.0, True), {}) is not None
        assert (server.find(resolve(forward), (q, q, q, None, True, 0.5, True), {}) is not None) == whole
        assert server.counts.unserved[forward][UNPAIRED.format(f"{forward}_backward")] == (not whole)


def test_calls_that_draw_without_a_way_to_judge_them_are_left_to_pytorch():
    overload = "aten::native_dropout"
    entry = replace(select([overload], unverified=True).entries[overload], lawless=True)
    server = Server({overload: entry}.get, "cpu")
    assert server.find(resolve(overload), (torch.randn(4), 0.5, True), {}) is None
    assert server.counts.unserved[overload][LAWLESS] == 1


def test_attention_with_dropout_has_the_gradients_of_what_it_kept():
    """Of the sum of the output, by value: each column's share of kept probability, from both served kernels."""
    forward = "aten::_scaled_dot_product_efficient_attention"
    q, k, v = (torch.randn(2, 2, 24, 16, requires_grad=True) for _ in range(3))
    with library.use(device="cpu", ops=[forward, f"{forward}_backward"], unverified=True) as registration:
        torch.manual_seed(3)
        out, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.4, True)
        out.sum().backward()
    assert registration.counts.served == {forward: 1, f"{forward}_backward": 1}
    torch.testing.assert_close((v * v.grad).sum(), out.sum(), rtol=1e-4, atol=1e-4)
