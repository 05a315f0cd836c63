"""Acceptance test 17: what `enable capture` records for users of their own code, and how it refuses."""

import inspect
import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from warm import python

from capture.settings import Setting, of_default, of_signature, parse
from capture.targets import load_target, trace_name
from enable.cli import run
from traces import Trace, UserError, verify

PROGRAM = Path(sys.executable).parent / "enablekit"
PROJECT = {
    "models/__init__.py": "from models.net import Net\n",
    "models/net.py": """\
import torch
class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = torch.nn.Linear(4, width)
        self.outer = torch.nn.Linear(width, 3)
    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))
""",
    "verify/__init__.py": "OWNER = 'user'\n",
    "generate.py": "SEED = 7\n",
    "pkg/__init__.py": "",
    "pkg/train.py": """\
import sys
import torch
import torch.nn.functional as F
import generate, verify
from models import Net

def loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])

def parts(width: "int | None" = None, lr=0.1, device: str = "cpu"):
    print("printed by the user")
    assert verify.OWNER == "user"
    torch.manual_seed(generate.SEED)
    model = Net(width or 8).to(device)
    batch = torch.randn(5, 4), torch.randint(3, (5,))
    return model, batch, loss, torch.optim.SGD(model.parameters(), lr)

def mapping(batches="callable"):
    model, batch, loss, optimizer = parts()
    source = {"callable": lambda: batch, "iterator": iter([batch] * 2), "dict": dict(zip("xy", batch)),
              "loader": torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*batch), batch_size=5)}[batches]
    by_name = lambda model, batch: F.cross_entropy(model(batch["x"]), batch["y"])
    return {"model": model, "batch": source, "loss": by_name if batches == "dict" else loss, "optimizer": optimizer}

def no_optimizer():
    return *parts()[:3], None

def plain():
    model, batch, loss, optimizer = parts()
    def step():
        optimizer.zero_grad()
        value = loss(model, batch)
        value.backward()
        optimizer.step()
    return step

class Own:
    def __init__(self):
        self.model, batch, _, _ = parts()
        self.batches = iter([batch])
    def step(self, batch, phase):
        with phase("serving"):
            return self.model(batch[0]).sum()
""",
}


def write(directory, files):
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return write(tmp_path_factory.mktemp("project"), PROJECT)


def capture(directory, *arguments, program=(PROGRAM,)):
    return python(*program, "capture", *arguments, cwd=directory)


def assert_refused(result, *words):
    assert result.returncode == 2, result.stdout + result.stderr
    line = [text for text in result.stderr.splitlines() if text.startswith("enable: ")]
    assert len(line) == 1 and "Traceback" not in result.stderr
    assert all(word in line[0] for word in words), line[0]


@pytest.mark.parametrize("program", [(PROGRAM,), ("-m", "enable")], ids=["console", "python -m"])
def test_17_a_project_with_packages_named_like_ours(project, tmp_path, program):
    result = capture(project, "pkg.train:parts", "--set", "width=6", "--json", "--out", tmp_path / "t", program=program)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)  # the user's own output is not in it
    assert "printed by the user" in result.stderr
    assert found["model"] == "pkg.train:parts" and len(found["losses"]) == 1 and found["peak_bytes"] > 0
    trace = Trace.open(tmp_path / "t")
    assert trace.manifest["info"]["settings"] == {"width": 6}
    phases = {r.overload: r.phase for r in trace.calls()}
    assert phases["aten::relu"] == "forward" and phases["aten::nll_loss_forward"] == "loss"
    assert phases["aten::threshold_backward"] == "backward"
    assert "optimizer" in {p for s in trace.signatures.values() for p in s.phases}
    assert {r.module for r in trace.calls()} >= {"inner", "outer"}
    assert verify(trace).passed


@pytest.mark.parametrize(
    ("target", "phases"),
    {
        "pkg.train:mapping": {"forward", "loss", "backward", "optimizer"},
        "pkg.train:no_optimizer": {"forward", "loss", "backward"},
        "pkg.train:plain": {"forward", "backward", "optimizer"},
        "pkg.train:Own": {"serving"},
    }.items(),
)
def test_17_what_a_factory_may_return(project, tmp_path, target, phases):
    result = capture(project, target, "--out", tmp_path / "t")
    assert result.returncode == 0, result.stderr
    trace = Trace.open(tmp_path / "t")
    assert {p for s in trace.signatures.values() for p in s.phases} == phases
    assert verify(trace).passed


@pytest.mark.parametrize("batches", ["callable", "iterator", "dict", "loader"])
def test_17_what_a_batch_may_be(project, tmp_path, batches):
    result = capture(project, "pkg.train:mapping", "--set", f"batches={batches}", "--out", tmp_path / "t")
    assert result.returncode == 0, result.stderr
    assert "aten::stack" not in {s.overload for s in Trace.open(tmp_path / "t").signatures.values()}  # a loader's


def test_17_the_trace_is_named_after_the_target(project):
    assert capture(project, "pkg.train:parts").returncode == 0
    assert capture(project, "pkg.train:parts", "--name", "mine").returncode == 0
    assert {p.name for p in (project / ".enable" / "traces").iterdir()} == {"pkg.train-parts.trace", "mine.trace"}
    assert_refused(capture(project, "pkg.train:parts", "--name", "../mine"), "--name", "../mine")
    assert trace_name("transformers:GPT2LMHeadModel") == "GPT2LMHeadModel"
    assert trace_name("timm:vit_tiny_patch16_224.a/b") == "vit_tiny_patch16_224.a-b"


BAD = {
    "missing module": ("nowhere:make", ["no module 'nowhere'"]),
    "missing submodule": ("pkg.nowhere:make", ["no module 'pkg'"]),
    "missing attribute": ("bad:make", ["bad.py has no 'make'", "it defines raises"]),
    "not callable": ("bad:NUMBER", ["NUMBER is an int, not a function"]),
    "a path": ("bad.py:raises", ["is not MODULE:FACTORY", "without .py"]),
    "a path with directories": ("./bad.py:raises", ["'./bad.py:raises' is not MODULE:FACTORY", "pkg.module:make"]),
    "no attribute": ("bad:", ["'bad:' is not MODULE:FACTORY"]),
    "factory raises": ("bad:raises", ["the factory raised KeyError: 'weights'", " at bad.py:7"]),
    "factory exits": ("bad:exits", ["the factory raised SystemExit: 3", " at bad.py:10"]),
    "raises in a library": ("bad:in_torch", ["raised RuntimeError", " at bad.py:13"]),
    "import raises": ("broken:make", ["importing broken raised ZeroDivisionError", " at broken.py:2"]),
    "import of something missing": ("needs:make", ["ModuleNotFoundError: No module named 'unheard_of'", "needs.py:1"]),
    "syntax error": ("syntax:make", ["SyntaxError", "syntax.py:1"]),
    "returns nothing": ("bad:nothing", ["the factory returned a NoneType; return a callable step(), or (model, batch"]),
    "returns a model": ("bad:only_model", ["the factory returned a Linear; return a callable"]),
    "three values": ("bad:three", ["the factory returned 3 values; return"]),
    "wrong mapping": ("bad:wrong_mapping", ["a mapping of ['model', 'optim']"]),
    "wrong order": ("bad:wrong_order", ["model is a Tensor, not a torch.nn.Module"]),
    "empty model": ("bad:empty", ["model ReLU has no parameters"]),
    "no optimizer": ("bad:string", ["optimizer is a str, not a torch.optim.Optimizer; None for no optimizer"]),
    "a criterion for a loss": ("bad:criterion", ["loss is a MSELoss", "lambda model, batch: criterion("]),
    "loss without gradient": ("bad:frozen", ["the loss needs no gradient", "step() that runs forward alone"]),
    "loss is no scalar": ("bad:vector", ["returned a Tensor, not a tensor of one element"]),
    "step raises": ("bad:stumbles", ["a training step raised ValueError: in the step", " at bad.py:37"]),
    "batch raises": ("bad:starves", ["the next batch raised OSError: no data", " at bad.py:41"]),
    "data end": ("bad:ends", ["its data end before the last step; ask for fewer with --steps"]),
    "step does nothing": ("bad:idle", ["nothing was recorded"]),
    "unknown library model": ("transformerz:GPT2", ["no module 'transformerz'"]),
}
BAD_FILES = {
    "bad.py": """\
import torch
from torch import nn
NUMBER = 3
model = nn.Linear(2, 2)
x = torch.ones(1, 2)
def raises():
    return {}["weights"]

def exits():
    raise SystemExit(3)

def in_torch():
    return torch.ones(2) @ torch.ones(3)

loss = lambda model, batch: model(batch).sum()
nothing = lambda: None
only_model = lambda: model
three = lambda: (model, x, loss)
wrong_mapping = lambda: {"model": model, "optim": None}
wrong_order = lambda: (x, model, loss, None)
empty = lambda: (nn.ReLU(), x, loss, None)
string = lambda: (model, x, loss, "adam")
criterion = lambda: (model, x, nn.MSELoss(), None)
vector = lambda: (model, x, lambda model, batch: model(batch), None)
idle = lambda: lambda: None
ends = lambda: (model, iter([x]), loss, None)

def frozen():
    with torch.no_grad():
        y = model(x).sum()
    return model, x, lambda model, batch: y, None


def stumbles():
    def step():
        torch.ones(2) + 1
        raise ValueError("in the step")
    return step
def starves():
    def batch():
        raise OSError("no data")
    return model, batch, loss, None
""",
    "broken.py": "def f():\n    return 1 / 0\nf()\n",
    "needs.py": "import unheard_of\n",
    "syntax.py": "def make(:\n",
}


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    return write(tmp_path_factory.mktemp("bad"), BAD_FILES)


@pytest.mark.parametrize(("target", "words"), BAD.values(), ids=BAD.keys())
def test_17_a_bad_target_is_one_line_and_leaves_nothing(bad, target, words, monkeypatch, capsys):
    monkeypatch.chdir(bad)
    monkeypatch.setattr(sys, "path", list(sys.path))
    status = run(["capture", target, "--steps", "2"])
    output = capsys.readouterr()
    assert_refused(subprocess.CompletedProcess((), status, output.out, output.err), *words)
    assert not list(bad.rglob("*trace*"))


def test_17_existing_output_is_refused_before_anything_is_imported(tmp_path):
    write(tmp_path, {"late.py": "open('imported', 'w').close()\n", "t/thesis.tex": "years"})
    assert_refused(capture(tmp_path, "late:make", "--out", "t"), "t exists", "--force", "--out")
    assert not (tmp_path / "imported").exists()
    assert_refused(capture(tmp_path, "late:make", "--max-bytes", "lots"), "'lots' is not a size")
    assert_refused(capture(tmp_path, "late:make", "--values", "none"), "values 'none'", "seeded")
    assert_refused(capture(tmp_path, "late:make", "--per-op-max", "0"), "per_op_max 0")
    assert not (tmp_path / "imported").exists()
    assert_refused(capture(tmp_path, "late:make"), "has no 'make'")
    assert (tmp_path / "imported").exists() and (tmp_path / "t" / "thesis.tex").read_text() == "years"


def test_17_force_replaces_a_trace_and_nothing_else(project, tmp_path):
    for options in ((), ("--force",)):
        assert capture(project, "pkg.train:plain", "--out", tmp_path / "t", *options).returncode == 0
    write(tmp_path, {"u/thesis.tex": "years"})
    assert_refused(capture(project, "pkg.train:plain", "--out", tmp_path / "u", "--force"), "not a trace")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t", "u"]


def test_17_relative_unicode_and_read_only_paths(project, tmp_path):
    result = capture(project, "pkg.train:plain", "--out", "Spuren/größe µ.trace")
    assert result.returncode == 0 and "enable coverage 'Spuren/größe µ.trace'" in result.stdout
    assert verify(Trace.open(project / "Spuren" / "größe µ.trace")).passed
    (tmp_path / "file").write_text("")
    assert_refused(capture(project, "pkg.train:plain", "--out", tmp_path / "file" / "t"), "cannot write here")
    if os.geteuid():
        (tmp_path / "locked").mkdir(mode=0o500)
        assert_refused(capture(project, "pkg.train:plain", "--out", tmp_path / "locked" / "t"), "cannot write here")


@pytest.mark.skipif(torch.cuda.is_available(), reason="the message for a machine without CUDA")
def test_a_device_that_cannot_be_used_is_not_advised():
    with pytest.raises(UserError) as raised:
        load_target("nanogpt", device="cuda")
    message, _, choices = str(raised.value).partition("; choose from ")
    assert message.startswith("device 'cuda' cannot be used here (") and "(nanogpt" not in message
    assert {"cpu", "sim"} <= {*choices.split(", ")} and "cuda" not in choices


def test_17_settings_of_a_factory(project, tmp_path):
    refusals = {
        ("parts", "--set", "widht=3"): ("no setting 'widht'", "width, lr, device"),
        ("parts", "--set", "lr=fast"): ("lr=fast is not a number", "lr=0.1"),
        ("parts", "--batch", "3"): ("no setting 'batch'",),
        ("plain", "--set", "a=1"): ("no setting 'a'; it takes none",),
    }
    out = ("--out", tmp_path / "t")
    for (factory, *options), words in refusals.items():
        assert_refused(capture(project, f"pkg.train:{factory}", *options, *out), *words)
    result = capture(project, "pkg.train:parts", "--device", "cpu", "--set", "width=none", *out)
    assert Trace.open(tmp_path / "t").manifest["info"]["settings"] == {"device": "cpu", "width": None}, result.stderr


def settings(a: int, b: "float | None" = None, c=True, d=(1, 2), *, e: list[int] | None = None, f="x", g=None): ...


@pytest.mark.parametrize(
    ("text", "value"),
    [("a=3", 3), ("b=1", 1.0), ("b=None", None), ("c=no", False), ("d=[3]", [3]), ("e=[1, 2]", [1, 2]), ("f=7", "7"),
     ("g=7", 7), ("g=seven", "seven"), ("g=True", True), ("e=null", None)],
)  # fmt: skip
def test_17_settings_are_typed_by_annotation_or_default(text, value):
    name, _, given = text.partition("=")
    found = parse("f", of_signature(settings)[0], {name: given})[name]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["a=3.5", "a=none", "b=nan", "c=maybe", "d=3", "d={}", "a=99999999999999999999"])
def test_17_settings_of_the_wrong_type(text):
    name, _, given = text.partition("=")
    with pytest.raises(UserError, match=name):
        parse("f", of_signature(settings)[0], {name: given})


def test_17_near_names_are_suggested_among_many():
    known = {f"name_{i}": Setting(int, 1) for i in range(99)} | {"n_layer": of_default(3)}
    with pytest.raises(UserError, match="no setting 'n_layers'; nearest are n_layer$"):
        parse("f", known, {"n_layers": "2"})


def test_17_refine_shows_the_defaults_that_it_does_not_import():
    from enable.commands import refine
    from generate.machine import DialogLimits

    hints = inspect.get_annotations(refine.command, eval_str=True)
    shown = {name: hints[name].__metadata__[0].show_default for name in ("dialogs", "calls", "temperature")}
    assert shown == {name: str(getattr(DialogLimits(), name)) for name in shown}


def test_17_the_command_imports_only_what_may_be_beside_a_users_program():
    code = "import sys, enable.cli, capture.session, enable.tables; print(*{m.split('.')[0] for m in sys.modules})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"models", "verify", "generate"} & set(result.stdout.split())


TINY = ["--set", "n_layer=1", "--set", "hidden_size=16", "--set", "n_head=2", "--set", "vocab_size=50"]


def test_17_transformers(tmp_path):
    pytest.importorskip("transformers")
    result = capture(tmp_path, "transformers:GPT2LMHeadModel", *TINY, "--set", "sequence=8", "--batch", "3")
    assert result.returncode == 0, result.stderr
    trace = Trace.open(tmp_path / ".enable" / "traces" / "GPT2LMHeadModel.trace")
    assert {p for s in trace.signatures.values() for p in s.phases} == {"forward", "backward", "optimizer"}
    assert any("[3, 8]" in s.arguments for s in trace.signatures.values())
    assert verify(trace).passed


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (list[int] | int, "[8, 8]", [8, 8]),
        (list[int] | int, "8", 8),
        (int | list[int] | tuple[int, int] | dict, '{"height": 8}', {"height": 8}),
        (int | None, "none", None),
    ],
)
def test_17_a_setting_of_several_types_takes_each(annotation, text, value):
    assert parse("a model", {"size": of_default(4, annotation)}, {"size": text}) == {"size": value}


def test_17_a_setting_of_one_type_takes_no_other():
    for annotation in (int | None, None, int):
        with pytest.raises(UserError, match=r"size=\[8\] is not a whole number"):
            parse("a model", {"size": of_default(4, annotation)}, {"size": "[8]"})


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("GPT2LMHeadModle", {}, "nearest are GPT2LMHeadModel"),
        ("GPT2Config", {}, "is no model with a config"),
        ("AutoModel", {}, "is no model with a config"),
        ("GPT2LMHeadModel", {"n_layers": "2"}, "nearest are n_layer"),
        ("GPT2LMHeadModel", {"n_layer": "two"}, "n_layer=two is not a whole number"),
        ("GPT2LMHeadModel", {"n_head": "5", "n_layer": "1"}, "building the model raised ValueError"),
        ("GPT2LMHeadModel", {"optimizer": "lion"}, "'lion'; choose from adamw, adamw-foreach, adamw-fused, sgd"),
        ("GPT2LMHeadModel", {"sequence": "0"}, "sequence 0 is not above 0"),
    ],
)
def test_17_transformers_refusals(name, given, words):
    pytest.importorskip("transformers")
    with pytest.raises(UserError, match=words) as error:
        load_target(f"transformers:{name}", given)
    assert "\n" not in str(error.value)


SMALL = {"hidden_size": "16", "num_attention_heads": "2", "num_hidden_layers": "1", "intermediate_size": "16"}
ENCODER_DECODER = {"d_model": "16", "d_kv": "8", "d_ff": "16", "num_layers": "1", "num_heads": "2", "sequence": "8"}
KINDS = {
    "BertModel": {**SMALL, "vocab_size": "30", "sequence": "8"},
    "BertForSequenceClassification": {**SMALL, "vocab_size": "30", "num_labels": "5"},
    "BertForQuestionAnswering": {**SMALL, "vocab_size": "30"},
    "T5ForConditionalGeneration": {**ENCODER_DECODER, "vocab_size": "30"},
    "ViTForImageClassification": {**SMALL, "image_size": "16", "patch_size": "8"},
    "ASTForAudioClassification": {**SMALL, "max_length": "64"},
}


@pytest.mark.parametrize(("name", "given"), KINDS.items(), ids=KINDS)
def test_17_transformers_of_other_kinds(name, given):
    """Text, images and sound; every parameter of the body gets a gradient that is not zero."""
    pytest.importorskip("transformers")
    training = load_target(f"transformers:{name}", {**given, "optimizer": "sgd", "lr": "0.1"}).training
    before = {n: p.detach().clone() for n, p in training.model.named_parameters()}
    loss = training.step(next(training.batches), lambda name: nullcontext())
    assert loss.isfinite()
    changed = [n for n, p in training.model.named_parameters() if not p.equal(before[n])]
    assert len(changed) > 0.7 * len(before), sorted(before.keys() - set(changed))


def test_17_timm(tmp_path):
    pytest.importorskip("timm", exc_type=ImportError)
    given = ["--set", "depth=1", "--set", "img_size=32", "--set", "num_classes=7"]
    result = capture(tmp_path, "timm:vit_tiny_patch16_224", *given)
    assert result.returncode == 0, result.stderr
    trace = Trace.open(tmp_path / ".enable" / "traces" / "vit_tiny_patch16_224.trace")
    assert any("[2, 3, 32, 32]" in s.arguments for s in trace.signatures.values())
    assert verify(trace).passed
    assert_refused(
        capture(tmp_path, "timm:vit_tiny_patch16_224", "--set", "dept=1", "--name", "b"), "nearest are depth"
    )
    assert_refused(capture(tmp_path, "timm:vit_tiny"), "timm has no model 'vit_tiny'", "vit_tiny_patch16_224")


@pytest.mark.parametrize(("target", "extra"), [("transformers:GPT2Model", "hf"), ("timm:resnet18", "timm")])
def test_17_a_missing_extra_is_named(monkeypatch, target, extra):
    monkeypatch.setitem(sys.modules, target.partition(":")[0], None)  # imports of it raise ModuleNotFoundError
    with pytest.raises(UserError, match=rf"is not installed; run: pip install 'enablekit\[{extra}\]'"):
        load_target(target)
