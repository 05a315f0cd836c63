"""The public package: what it offers, its options, and how it refuses misuse."""

import dataclasses
import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import enablekit
from capture.limits import Limits
from enable import library

ROOT = Path(__file__).parents[2]


def recorded(path, **options):
    with enablekit.Recorder(path, **options) as recorder:
        torch.relu(torch.ones(3))
    return recorder


def test_every_public_name_is_there_and_is_listed():
    assert {name: getattr(enablekit, name) for name in enablekit.__all__}
    assert {*enablekit.__all__} <= {*dir(enablekit)}
    with pytest.raises(AttributeError, match="no attribute 'Recoder'; choose from Recorder, "):
        _ = enablekit.Recoder


def test_importing_it_imports_no_torch():
    program = "import enablekit, sys; print('torch' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False False\n"


def test_a_recorder_names_each_of_its_limits():
    parameters = inspect.signature(enablekit.Recorder).parameters
    assert all(parameters[field.name].default == field.default for field in dataclasses.fields(Limits))
    assert not [p for p in parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD]


def test_use_has_the_options_of_register():
    assert inspect.signature(enablekit.use).parameters == inspect.signature(enablekit.register).parameters


MISTAKES = {
    "a directory without kernels": (enablekit.register, {"device": "sim", "library": "."}, "no kernel files .* in \\."),
    "no directory": (enablekit.register, {"device": "sim", "library": "nodir"}, "no kernel library at nodir"),
    "no library": (enablekit.register, {"library": 3}, "register: library 3 is not an instance of Library or a text"),
    "no workspace": (enablekit.register, {"workspace": 3}, "register: workspace 3 is not a text or a path or None"),
    "no device": (enablekit.register, {"device": None}, "register: device None is not a text"),
    "no truth value": (enablekit.register, {"unverified": "maybe"}, "unverified 'maybe' is not True or False"),
    "one operator": (enablekit.register, {"ops": "aten::gelu"}, r"ops 'aten::gelu' is not .*; write \['aten::gelu'\]"),
    "an operator without a name": (enablekit.register, {"ops": [3]}, r"ops \[3\] is not a list of texts or None"),
    "an unknown kind of calls": (enablekit.register, {"only": "foo"}, "only 'foo' is not 'judged' or None"),
    "no module": (enablekit.Recorder, {"path": "b.trace", "model": "x"}, "Recorder: model 'x' is not an .* Module"),
    "no path": (enablekit.Recorder, {"path": None}, "Recorder: path None is not a text or a path"),
    "a number as a path": (enablekit.Recorder, {"path": 3}, "Recorder: path 3 is not a text or a path"),
    "one phase": (enablekit.Recorder, {"path": "b.trace", "phases": "forward"}, r"write \['forward'\]"),
    "an unknown level": (enablekit.Recorder, {"path": "b.trace", "values": "all"}, "values 'all'.* 'full' or 'seeded'"),
    "no trace": (enablekit.Trace.open, {"path": None}, "Trace.open: path None is not a text or a path"),
    "nothing to cover": (enablekit.coverage, {"trace": None}, "coverage: trace None is not a text or a path"),
    "no limit": (enablekit.verify, {"target": "gelu", "limit": "x"}, "verify: limit 'x' is not a whole number, 1 or m"),
    "a limit of 0": (enablekit.verify, {"target": "gelu", "limit": 0}, "verify: limit 0 is not a whole number, 1 or m"),
    "no seed": (enablekit.verify, {"target": "gelu", "seed": "x"}, "verify: seed 'x' is not a whole number"),
    "one source": (enablekit.verify, {"target": "gelu", "cases": "foo"}, r"cases 'foo' is not .*; write \['foo'\]"),
}


@pytest.mark.parametrize(("function", "arguments", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_in_an_argument_is_named(function, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(enablekit.UserError, match=message) as raised:
        function(**arguments)
    assert "\n" not in str(raised.value) and not any(tmp_path.iterdir())


def test_a_library_may_be_a_path(tmp_path):
    group = tmp_path / "kernels" / "pointwise"
    group.mkdir(parents=True)
    shutil.copy(ROOT / "generate" / "kernels" / "pointwise" / "relu.py", group)
    options = {"unverified": True, "library": str(tmp_path / "kernels"), "workspace": tmp_path / "none"}
    with enablekit.use("sim", **options) as registration:
        x = torch.ones(3).to("sim")
        torch.relu(x)
        with pytest.raises(NotImplementedError, match="aten::exp"):
            torch.exp(x)
    assert registration.counts.served == {"aten::relu": 1}


def test_names_may_be_any_collection(tmp_path):
    for names in ({"aten::exp"}, ("exp",), (name for name in ["exp"])):
        enablekit.register("cpu", ops=names, unverified=True, workspace=tmp_path / "none").undo()


def test_sizes_may_be_texts(tmp_path):
    recorder = recorded(tmp_path / "a.trace", max_bytes="100MB", max_blob="1MiB", queue_bytes=1 << 20)
    limits = recorder.limits
    assert (limits.max_bytes, limits.max_blob, limits.queue_bytes) == (100_000_000, 1 << 20, 1 << 20)
    with pytest.raises(enablekit.UserError, match="'100 bananas' is not a size; write it like 100MB"):
        enablekit.Recorder(tmp_path / "b.trace", max_bytes="100 bananas")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"phases": ("fwd",)}, "no call was in phase fwd; the program's phases: forward"),
        ({"ops": ("aten::mm",)}, "no overload matches ops aten::mm; write them like aten::mm or"),
    ],
)
def test_a_filter_that_leaves_nothing_is_said_to(tmp_path, options, reason):
    with pytest.warns(RuntimeWarning, match=f"nothing was recorded: {reason}"):
        recorded(tmp_path / "a.trace", **options)


def test_an_empty_block_is_said_to_be(tmp_path):
    empty = pytest.warns(RuntimeWarning, match="nothing was recorded: no ATen call was made in this block")
    with empty, enablekit.Recorder(tmp_path / "a.trace"):
        pass


@pytest.mark.parametrize("method", ["step", "phase", "pause"])
def test_a_recorder_outside_its_block_is_refused(tmp_path, method):
    recorder = enablekit.Recorder(tmp_path / "a.trace")
    expected = rf"a\.trace: {method}\(\) outside the block; write: with Recorder\(\.\.\.\) as recorder"
    with pytest.raises(enablekit.UserError, match=expected):
        if method == "step":
            recorder.step()
        else:
            with getattr(recorder, method)(*(["loss"] if method == "phase" else [])):
                pass
    assert not recorder.path.endswith("step") and not (tmp_path / "a.trace").exists()


def test_a_workspace_may_be_a_text(tmp_path):
    refused = pytest.raises(library.NothingVerified, match="nowhere")
    with refused, enablekit.use("sim", workspace=str(tmp_path / "nowhere")):
        pass


def test_coverage_and_verdicts_are_objects(tmp_path):
    recorded(tmp_path / "relu.trace")
    covered = enablekit.coverage(tmp_path / "relu.trace", workspace=tmp_path / "workspace")
    assert covered.as_json()["overloads"]["percent"] == 100
    verdict = enablekit.verify("relu", cases=("opinfo",), workspace=str(tmp_path / "workspace"))
    assert verdict.outcome == "PASS"
    with pytest.raises(enablekit.UserError, match="nope"):
        enablekit.verify("relu", cases=("nope",), workspace=tmp_path / "workspace")
