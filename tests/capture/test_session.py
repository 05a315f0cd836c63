import dataclasses

import pytest
import torch

from capture.keys import MODULE
from capture.limits import Limits
from capture.session import LONG, capture_model, worth_building
from capture.targets import default_settings, describe_models, load_target
from traces import Trace, UserError, verify

SMALL = {"n_layer": "1", "n_head": "2", "n_embd": "16", "block_size": "8"}


@pytest.fixture
def target():
    return load_target("nanogpt", SMALL, batch=2)


def test_a_step_of_a_model(target, tmp_path):
    path = tmp_path / "new" / "nanogpt.trace"
    summary = capture_model(target, path, steps=2, progress=False)
    trace = Trace.open(path)
    assert (summary.path, summary.calls, summary.signatures) == (path, trace.manifest["calls"], len(trace.signatures))
    assert summary.stored == len(list(trace.calls()))
    assert summary.overloads == len({s.overload for s in trace.signatures.values()})
    assert summary.nbytes <= sum(p.stat().st_size for p in path.iterdir())
    assert summary.errors == {}
    assert {phase for s in trace.signatures.values() for phase in s.phases} == {
        "forward", "loss", "backward", "clip", "optimizer",
    }  # fmt: skip
    assert trace.manifest["steps"] == 2
    assert trace.manifest["info"]["settings"]["n_embd"] == 16
    assert verify(trace).passed
    training = load_target("nanogpt", SMALL, batch=2).training
    assert summary.losses == [training.step(next(training.batches)).item() for _ in range(2)]


def test_the_first_step_is_recorded(target, tmp_path):
    """A new device must also run what creates the optimizer's state."""
    capture_model(target, tmp_path / "a.trace", progress=False)
    created = [s for s in Trace.open(tmp_path / "a.trace").signatures.values() if s.overload == "aten::zeros_like"]
    assert sum(s.phases.get("optimizer", 0) for s in created) > 0


def test_skipped_steps_compile_nothing(target, tmp_path):
    compiled = []
    backend = lambda graph, inputs: compiled.append(graph) or graph  # noqa: E731
    target.training.loss = torch.compile(target.training.loss, backend=backend)
    capture_model(target, tmp_path / "a.trace", skip_steps=1, progress=False)
    assert not compiled and Trace.open(tmp_path / "a.trace").manifest["steps"] == 1


def test_17_an_existing_path_is_refused_before_anything_runs(target, tmp_path):
    capture_model(target, tmp_path / "a.trace", progress=False)
    before = [p.stat().st_mtime_ns for p in sorted((tmp_path / "a.trace").iterdir())]
    with pytest.raises(UserError, match=r"exists; pass --force to replace it or --out DIR"):
        capture_model(target, tmp_path / "a.trace", progress=False)
    assert [p.stat().st_mtime_ns for p in sorted((tmp_path / "a.trace").iterdir())] == before
    capture_model(target, tmp_path / "a.trace", force=True, progress=False)
    assert [p.name for p in tmp_path.iterdir()] == ["a.trace"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
def test_17_a_failure_leaves_nothing_and_keeps_what_was_there(target, tmp_path, error):
    capture_model(target, tmp_path / "a.trace", progress=False)

    def fail(*args):
        raise error

    target.training.loss = fail
    for name, force in (("a.trace", True), ("b.trace", False)):
        with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else UserError):
            capture_model(target, tmp_path / name, force=force, progress=False)
    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else UserError):
        capture_model(target, tmp_path / "new" / "directories" / "b.trace", progress=False)
    assert [p.name for p in tmp_path.iterdir()] == ["a.trace"]
    assert Trace.open(tmp_path / "a.trace").complete


def test_force_does_not_replace_what_is_not_a_trace(target, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "a.tex").write_text("years")
    with pytest.raises(UserError, match="not a trace"):
        capture_model(target, tmp_path / "thesis", force=True, progress=False)
    assert (tmp_path / "thesis" / "a.tex").read_text() == "years"


def test_17_a_path_that_cannot_be_written(target, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write here"):
        capture_model(target, tmp_path / "file" / "a.trace", progress=False)


def test_10_recording_that_stopped_is_an_error(target, tmp_path, monkeypatch):
    monkeypatch.setattr("capture.observer.recorded_key", lambda *args: 1 / 0)
    with pytest.raises(UserError, match=r"recording stopped after errors \(.*ZeroDivisionError.*marked as unfinished"):
        capture_model(target, tmp_path / "a.trace", progress=False)
    assert [p.name for p in tmp_path.iterdir()] == ["a.trace"]
    assert not Trace.open(tmp_path / "a.trace", partial=True).complete


def test_recording_that_stopped_replaces_nothing(target, tmp_path, monkeypatch):
    capture_model(target, tmp_path / "a.trace", progress=False)
    monkeypatch.setattr("capture.observer.recorded_key", lambda *args: 1 / 0)
    with pytest.raises(UserError, match="nothing was replaced"):
        capture_model(target, tmp_path / "a.trace", force=True, progress=False)
    assert Trace.open(tmp_path / "a.trace").complete
    assert [p.name for p in tmp_path.iterdir()] == ["a.trace"]


def test_skipped_steps_run_unrecorded(target, tmp_path):
    summary = capture_model(target, tmp_path / "a.trace", skip_steps=1, steps=2, progress=False)
    training = load_target("nanogpt", SMALL, batch=2).training
    losses = [training.step(next(training.batches)).item() for _ in range(3)]
    assert summary.losses == losses[1:]
    trace = Trace.open(tmp_path / "a.trace")
    assert trace.manifest["steps"] == 2
    created = [s for s in trace.signatures.values() if s.overload == "aten::zeros_like"]
    assert sum(s.phases.get("optimizer", 0) for s in created) == 0


def test_limits_reach_the_recorder(target, tmp_path):
    summary = capture_model(
        target, tmp_path / "a.trace", ops=("aten::mm", "aten::addmm"), phases=("forward",), progress=False
    )
    trace = Trace.open(tmp_path / "a.trace")
    assert {r.overload for r in trace.calls()} <= {"aten::mm", "aten::addmm"}
    assert {r.phase for r in trace.calls()} == {"forward"}
    assert summary.peak > 50 << 20 and sum(summary.levels.values()) == summary.stored


def test_keys_are_made_in_cpp_where_that_is_worth_building_it(target, tmp_path, monkeypatch):
    on_gpu = dataclasses.replace(target, device="cuda:0")

    def used(target, steps):
        return worth_building(tmp_path, target, Limits(steps=steps)) is not None

    assert not used(target, LONG) and not used(on_gpu, LONG - 1) and used(on_gpu, LONG)
    assert worth_building(None, on_gpu, Limits(steps=LONG)) is None
    place = MODULE.built_path(tmp_path)
    place.parent.mkdir()
    place.touch()
    assert used(target, 1)
    monkeypatch.setenv("ENABLE_NATIVE", "0")
    assert not used(target, 1) and not used(on_gpu, LONG)


def test_nothing_recorded_is_an_error(target, tmp_path):
    filters = [
        ({"phases": ("lunch",)}, "has no phase 'lunch'; choose from forward, loss, backward, clip, optimizer"),
        ({"phases": ("forwrd",)}, "has no phase 'forwrd', did you mean forward"),
        ({"ops": ("aten::zzz*",)}, "no operator of PyTorch matches --ops 'aten::zzz\\*'; write it like aten::mm"),
        ({"ops": ("aten::geluu",)}, "no operator of PyTorch matches --ops 'aten::geluu', did you mean gelu"),
        ({"ops": ("aten::bincount",)}, "nothing was recorded: no overload matches ops aten::bincount"),
        ({"ops": ("aten::bincount",), "phases": ("loss",)}, "nothing was recorded: no overload matches ops aten::bin"),
        ({"ops": ("aten::*optim*", "aten::mm"), "phases": ("clip",)}, "no call was in phase clip; .* phases: back"),
    ]
    for options, message in filters:
        with pytest.raises(UserError, match=message):
            capture_model(target, tmp_path / "a.trace", progress=False, **options)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_directory_is_no_obstacle(target, tmp_path):
    (tmp_path / "a.trace").mkdir()
    capture_model(target, tmp_path / "a.trace", progress=False)
    assert Trace.open(tmp_path / "a.trace").complete


def test_no_steps(target, tmp_path):
    with pytest.raises(UserError, match="steps 0 is too small"):
        capture_model(target, tmp_path / "a.trace", steps=0)


BAD = {
    "a misspelt model": (lambda: load_target("nanogtp"), r"no model 'nanogtp', did you mean nanogpt\? choose from"),
    "unknown model": (lambda: load_target("gpt5"), r"no model 'gpt5'; choose from .*, nanogpt \(enable models"),
    "a module that is no model": (lambda: load_target("training"), "no model 'training'"),
    "a path": (lambda: load_target("../evil"), r"no model '../evil'"),
    "unknown setting": (
        lambda: load_target("nanogpt", {"n_layers": "2"}),
        "no setting 'n_layers', did you mean n_layer",
    ),
    "not a number": (lambda: load_target("nanogpt", {"n_layer": "two"}), "n_layer=two is not a whole number"),
    "not a truth value": (lambda: load_target("nanogpt", {"bias": "maybe"}), "bias=maybe is not true or false"),
    "unknown optimizer": (lambda: load_target("nanogpt", optimizer="lion"), "optimizer 'lion' is not one of: adamw"),
    "optimizer of another model": (lambda: load_target("dlrm", optimizer="adamw"), "is not one of: sgd, adagrad"),
    "batch of nothing": (lambda: load_target("nanogpt", batch=0), "batch 0 is not above 0"),
    "heads that do not divide": (lambda: load_target("nanogpt", {"n_head": "3"}), "n_embd 128 is not a multiple of"),
    "unknown device": (lambda: load_target("nanogpt", SMALL, device="toaster"), "toaster"),
}


@pytest.mark.parametrize(("load", "message"), BAD.values(), ids=BAD.keys())
def test_17_a_bad_target_is_one_line(load, message):
    with pytest.raises(UserError, match=message) as error:
        load()
    assert "\n" not in str(error.value)


def test_settings_are_read_as_their_types():
    settings = load_target("nanogpt", {**SMALL, "bias": "true", "lr": "3e-4"}, batch=2, optimizer="sgd").settings
    assert (settings["bias"], settings["lr"], settings["n_layer"]) == (True, 3e-4, 1)
    assert (settings["batch"], settings["optimizer"]) == (2, "sgd")


def test_the_zoo_describes_itself():
    models = describe_models()
    assert set(models) == {"dcn", "dhen", "dlrm", "hstu", "nanogpt"}
    assert all(text.endswith(".") for text in models.values())
    assert default_settings("nanogpt")["n_layer"] == 4


def test_bad_data_is_one_line(tmp_path):
    (tmp_path / "day.tsv").write_text("1\t2\n")
    target = load_target("dlrm", {"data": str(tmp_path / "day.tsv"), "lookups": "1"}, batch=1)
    with pytest.raises(UserError, match=r"dlrm: .*day.tsv: line 1: has 2 columns"):
        capture_model(target, tmp_path / "a.trace", progress=False)
    assert not (tmp_path / "a.trace").exists()


def test_the_seed_decides_everything():
    losses = []
    for _ in range(2):
        torch.manual_seed(99)
        training = load_target("nanogpt", SMALL, batch=2).training
        losses.append(training.step(next(training.batches)))
    assert losses[0] == losses[1]


@pytest.mark.parametrize("force", [False, True])
def test_of_two_recordings_for_one_path_the_first_that_ends_wins(target, tmp_path, force):
    path = tmp_path / "a.trace"
    if force:
        capture_model(target, path, progress=False, phases=("loss",))

    def batches():
        """Another command's recording begins and ends while the first is under way."""
        capture_model(load_target("nanogpt", SMALL, batch=2), path, force=force, progress=False, phases=("forward",))
        yield from target.training.batches

    first = dataclasses.replace(target, training=dataclasses.replace(target.training, batches=batches()))
    with pytest.raises(UserError, match="another recording was put there meanwhile, and stays") as told:
        capture_model(first, path, force=force, progress=False)
    assert "\n" not in str(told.value) and "--force" in str(told.value)
    trace = Trace.open(path)
    assert verify(trace).passed and {p for s in trace.signatures.values() for p in s.phases} == {"forward"}
    assert [p.name for p in tmp_path.iterdir()] == ["a.trace"]
