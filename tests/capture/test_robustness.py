"""Whatever the program does and whatever goes wrong in the recorder, the program goes on as without it."""

import errno
import os
import threading
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint
from warm import python

import capture.observer
import capture.tape
from capture import Recorder
from traces import Trace, TraceError, verify
from traces.values import unpack

ROOT = Path(__file__).parents[2]


def overloads(path):
    return {s.overload for s in Trace.open(path).signatures.values()}


def test_10_an_error_of_the_recorder_is_counted_and_not_raised(tmp_path, monkeypatch):
    honest = capture.tape.results

    def broken(op, *args, **kwargs):
        if op is torch.ops.aten.mm.default:
            raise KeyError("no such dtype")
        return honest(op, *args, **kwargs)

    monkeypatch.setattr(capture.tape, "results", broken)
    with Recorder(tmp_path / "a.trace") as recorder:
        y = torch.mm(torch.eye(2), torch.ones(2, 2)).exp()
    assert y.shape == (2, 2)
    assert recorder.errors == {"aten::mm": {"count": 1, "first": "KeyError: 'no such dtype'"}}
    trace = Trace.open(tmp_path / "a.trace")
    assert trace.manifest["errors"] == recorder.errors
    assert "aten::exp" in {r.overload for r in trace.calls()}


def test_10_recording_stops_after_many_errors(tmp_path, monkeypatch):
    monkeypatch.setattr(capture.observer, "recorded_key", lambda *args: 1 / 0)
    with Recorder(tmp_path / "a.trace") as recorder:
        for _ in range(100):
            torch.ones(2)
    assert recorder.errors["aten::ones"]["count"] == capture.observer.MAX_ERRORS
    with pytest.raises(TraceError, match="did not finish"):
        Trace.open(tmp_path / "a.trace")


def test_11_a_full_disk_stops_the_recording_and_not_the_training(tmp_path, monkeypatch):
    def full(path, chunks):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.warns(RuntimeWarning, match="incomplete: .*No space left"), Recorder(tmp_path / "a.trace"):
        monkeypatch.setattr("traces.format.write_durably", full)
        x = torch.ones(2) + 1
    assert x.tolist() == [2.0, 2.0]
    with pytest.raises(TraceError, match="did not finish"):
        Trace.open(tmp_path / "a.trace")


def test_a_program_that_raises_leaves_an_unfinished_trace(tmp_path):
    with pytest.raises(ZeroDivisionError), Recorder(tmp_path / "a.trace"):
        torch.ones(2) + 1
        raise ZeroDivisionError
    with pytest.raises(TraceError, match="did not finish"):
        Trace.open(tmp_path / "a.trace")
    assert verify(Trace.open(tmp_path / "a.trace", partial=True)).exact == 2


def test_a_call_that_raises_is_raised_and_not_stored(tmp_path):
    with Recorder(tmp_path / "a.trace"), pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        torch.mm(torch.ones(2, 3), torch.ones(2, 3))
    assert "aten::mm" not in {r.overload for r in Trace.open(tmp_path / "a.trace").calls()}


def test_recording_leaves_storages_resizable(tmp_path):
    x = torch.ones(4)
    with Recorder(tmp_path / "a.trace"):
        y = x + 1
        x.resize_(1000)
        y.resize_(1000)
    assert not Recorder(tmp_path / "b.trace").errors


def test_15_inference_mode_records_what_no_grad_records(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4))
    x = torch.rand(2, 3)
    with torch.inference_mode():
        expected = model(x)
        with Recorder(tmp_path / "a.trace"):
            found = model(x)
    assert torch.equal(expected, found)
    assert overloads(tmp_path / "a.trace") == {"aten::t", "aten::addmm", "aten::native_layer_norm"}


def test_15_fake_and_meta_tensors_are_not_recorded(tmp_path):
    with Recorder(tmp_path / "a.trace") as recorder:
        with FakeTensorMode():
            fake = torch.ones(3) * 2
        meta = torch.ones(3, device="meta") + 1
        torch.ones(3).exp()
    assert (fake.shape, meta.device.type) == ((3,), "meta")
    assert overloads(tmp_path / "a.trace") == {"aten::ones", "aten::exp"}
    assert Trace.open(tmp_path / "a.trace").manifest["calls"] == 2
    assert recorder.skipped["meta tensors"] == 2
    assert not recorder.errors


def test_tensor_subclasses_are_recorded_as_what_they_do(tmp_path):
    from torch.testing._internal.two_tensor import TwoTensor

    a = TwoTensor(torch.ones(2), torch.zeros(2))
    with Recorder(tmp_path / "a.trace") as recorder:
        b = a.exp()
    assert (b.a.tolist(), b.b.tolist()) == ([torch.e, torch.e], [1.0, 1.0]) or torch.equal(b.b, torch.ones(2))
    assert not recorder.errors
    assert [s.calls for s in Trace.open(tmp_path / "a.trace").signatures.values() if s.overload == "aten::exp"] == [2]


def test_15_checkpointing_and_autocast(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())
    x = torch.ones(2, 3, requires_grad=True)
    with Recorder(tmp_path / "a.trace", model=model) as recorder:
        checkpoint(model, x, use_reentrant=False).sum().backward()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model(x)
    assert not recorder.errors
    trace = Trace.open(tmp_path / "a.trace")
    tanh = [s.phases for s in trace.signatures.values() if s.overload == "aten::tanh" and "bfloat16" not in s.arguments]
    assert tanh == [{"forward": 1, "backward": 1}]
    assert "aten::_to_copy" in overloads(tmp_path / "a.trace")
    assert verify(trace).passed


def test_15_vmap_and_grad(tmp_path):
    x = torch.rand(4, 3)
    expected = torch.vmap(torch.func.grad(lambda v: (v.sin() * v).sum()))(x)
    with Recorder(tmp_path / "a.trace") as recorder:
        found = torch.vmap(torch.func.grad(lambda v: (v.sin() * v).sum()))(x)
    assert torch.equal(expected, found)
    assert not recorder.errors
    assert verify(Trace.open(tmp_path / "a.trace")).passed


def test_dropout_with_attention_weights(tmp_path):
    q = torch.rand(1, 2, 4, 8, requires_grad=True)
    with Recorder(tmp_path / "a.trace", per_signature=9) as recorder:
        F.scaled_dot_product_attention(q, q, q, dropout_p=0.3, is_causal=True).sum().backward()
    assert not recorder.errors
    report = verify(Trace.open(tmp_path / "a.trace"))
    assert report.passed, report.mismatches


SCRIPT = """
import generate, models, verify
import torch
from capture import Recorder

assert (models.NAME, verify.NAME, generate.NAME) == ("mine", "mine", "mine")
model = models.net()
optimizer = torch.optim.AdamW(model.parameters())
with Recorder("step.trace", model=model) as recorder:
    for _ in range(2):
        loss = verify.check(model(generate.batch()))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        recorder.step()
import sys
ours = [m.__file__ for n, m in sys.modules.items() if n.split(".")[0] in ("models", "verify", "generate")]
assert all("project" in f for f in ours), ours
"""


def test_a_project_with_packages_of_the_same_names_as_ours(tmp_path):
    project = tmp_path / "project"
    for name, text in {
        "models/__init__.py": "import torch\nNAME = 'mine'\ndef net(): return torch.nn.Linear(3, 1)\n",
        "verify/__init__.py": "NAME = 'mine'\ndef check(y): return y.square().mean()\n",
        "generate.py": "import torch\nNAME = 'mine'\ndef batch(): return torch.ones(2, 3)\n",
        "train.py": SCRIPT,
    }.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = python("train.py", cwd=project, PYTHONPATH=os.pathsep.join(paths))
    assert done.returncode == 0, done.stderr
    trace = Trace.open(project / "step.trace")
    assert trace.manifest["steps"] == 2
    assert verify(trace).passed


def test_a_call_that_raises_does_not_use_up_the_sample(tmp_path):
    table = torch.rand(4, 3)
    with Recorder(tmp_path / "a.trace") as recorder:
        with pytest.raises(IndexError):
            F.embedding(torch.tensor([9]), table)
        F.embedding(torch.tensor([1]), table)
        F.embedding(torch.tensor([2]), table)
    trace = Trace.open(tmp_path / "a.trace")
    (found,) = [s for s in trace.signatures.values() if s.overload == "aten::embedding"]
    (call,) = [r for r in trace.calls() if r.overload == "aten::embedding"]
    assert (found.calls, len(found.samples)) == (3, 1)
    assert unpack(trace.packed(call))["indices"].tolist() == [1]
    assert not recorder.errors


def test_calls_that_raise_leave_no_bytes(tmp_path):
    with Recorder(tmp_path / "a.trace"):
        for i in range(3):
            with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
                torch.mm(torch.full((2, 3), i), torch.full((2, 3), i))
    assert not list((tmp_path / "a.trace").glob("blobs-*"))


def test_10_a_signature_that_cannot_be_stored_fails_once(tmp_path, monkeypatch):
    monkeypatch.setattr(capture.tape, "lay_out", lambda *args: 1 / 0)
    with Recorder(tmp_path / "a.trace") as recorder:
        for _ in range(2 * capture.observer.MAX_ERRORS):
            torch.ones(2)
    assert recorder.errors["aten::ones"]["count"] == 1
    assert Trace.open(tmp_path / "a.trace").manifest["calls"] == 2 * capture.observer.MAX_ERRORS


@pytest.mark.parametrize("per_signature", [1, 3])
def test_16_threads_store_no_more_than_wanted(tmp_path, per_signature):
    inside = threading.Barrier(4)

    @torch.library.custom_op(f"enablekit_tests::meet{per_signature}", mutates_args=())
    def meet(x: torch.Tensor) -> torch.Tensor:
        inside.wait(timeout=30)  # all four calls have begun, none has returned
        return x.clone()

    def work(recorder):
        with recorder:
            meet(torch.ones(2))

    with Recorder(tmp_path / "a.trace", per_signature=per_signature) as recorder:
        threads = [threading.Thread(target=work, args=(recorder,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not recorder.errors
    signatures = Trace.open(tmp_path / "a.trace").signatures.values()
    (found,) = [s for s in signatures if s.overload.startswith("enablekit_tests::meet")]
    assert (found.calls, len(found.samples)) == (4, per_signature)


def test_a_call_inside_a_call_of_the_same_signature(tmp_path):
    with Recorder(tmp_path / "a.trace") as recorder:

        @torch.library.custom_op("enablekit_tests::countdown", mutates_args=())
        def countdown(x: torch.Tensor) -> torch.Tensor:
            if x.item() == 0:
                return x.clone()
            with recorder._modes[threading.get_ident()]:
                return countdown(x - 1)

        countdown(torch.tensor(2.0))
    assert not recorder.errors
    signatures = Trace.open(tmp_path / "a.trace").signatures.values()
    (found,) = [s for s in signatures if s.overload == "enablekit_tests::countdown"]
    assert (found.calls, len(found.samples)) == (3, 1)
