"""The public package: what it offers, its options, and how it refuses misuse."""

import dataclasses
import inspect
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
