"""Exported kernels work where none of ours is."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import warm

from enable.cli import run
from generate.kernel_library import KERNELS

ROOT = Path(__file__).parents[2]


def enable(*arguments, cwd):
    return warm.python("-m", "enable", "--workspace", cwd / "ws", "export", *arguments, cwd=cwd, timeout=200)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The directory into which pip has put an exported package of everything."""
    place = tmp_path_factory.mktemp("package")
    told = enable("--unverified", "--name", "their_kernels", "out", "--json", cwd=place)
    assert told.returncode == 0, told.stderr
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run(
        [*pip, "--target", str(place / "site"), str(place / "out")], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return place / "site", json.loads(told.stdout)


def python(code, site, cwd, **variables):
    """Run code that has the installed package, torch and Triton, and refuses what is ours or only we need."""
    ours = "'traces', 'verify', 'enable', 'generate', 'capture', 'yaml'"
    refuse = f"import sys\nfor name in ({ours}): sys.modules[name] = None\n"
    environment = {"PATH": os.defpath, "PYTHONPATH": str(site), **variables}
    command = [sys.executable, "-W", "error", "-W", "ignore:TRITON_DEFAULT_FP_FUSION", "-c", refuse + code]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=200, env=environment)


TRAIN = """
import torch
before = torch._C._dispatch_dump("aten::exp"), torch._C._dispatch_dump("aten::_foreach_mul_.Scalar")
import their_kernels
torch.manual_seed(0)
x, w = torch.randn(3, 4, requires_grad=True), torch.randn(4, 2)
torch.mm(x.exp(), w).mul_(2).sum().backward()
torch.testing.assert_close(x.grad, (2 * w.sum(1) * x.detach().to(torch.complex128).exp().real).float())
y = [torch.ones(2), torch.ones(3)]
torch._foreach_mul_(y, 3.0)
assert y[1].tolist() == [3, 3, 3]
wide = x.detach().to(torch.complex128)
torch.testing.assert_close(torch.exp(x.detach(), out=torch.empty(0)), wide.exp().real.float())
counts = their_kernels.registration.counts
their_kernels.undo()
assert before == (torch._C._dispatch_dump("aten::exp"), torch._C._dispatch_dump("aten::_foreach_mul_.Scalar"))
x.exp()
names = "aten::exp", "aten::exp.out", "aten::mm", "aten::mul_.Tensor", "aten::_foreach_mul_.Scalar"
print(*(counts.served[n] for n in names))
print(dict(counts.unserved["aten::exp"]))
"""


def test_a_package_serves_without_us_and_is_undone(installed, tmp_path):
    ran = python(TRAIN, installed[0], tmp_path, TRITON_INTERPRET="1", THEIR_KERNELS_DEVICE="cpu")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == '1 1 2 1 1\n{"the kernel\'s DTYPES do not list complex128": 2}\n'


def test_a_package_registers_when_told_to(installed, tmp_path):
    code = (
        "import torch, their_kernels\nassert their_kernels.registration is None\n"
        "x = torch.ones(2)\nregistration = their_kernels.register('cpu')\nx.exp()\nregistration.undo()\n"
        "x.exp()\nprint(registration.counts.served, dict(registration.left_out))"
    )
    ran = python(code, installed[0], tmp_path, TRITON_INTERPRET="1", THEIR_KERNELS_DEVICE="none")
    assert ran.stdout == "Counter({'aten::exp': 1}) {}\n", ran.stderr


def test_an_import_warns_of_a_kernel_that_was_changed(installed, tmp_path):
    site = shutil.copytree(installed[0], tmp_path / "site")
    code = "import their_kernels; print(their_kernels.changed())"
    ran = python(code, site, tmp_path, THEIR_KERNELS_DEVICE="none")
    assert ran.stdout == "[]\n" and ran.stderr == ""
    path = site / "their_kernels" / "kernels" / "pointwise" / "exp.py"
    path.write_text(path.read_text() + "# changed\n")
    ran = python(code, site, tmp_path, THEIR_KERNELS_DEVICE="none")  # where warnings are errors
    assert ran.returncode == 1
    assert "kernels/pointwise/exp.py changed since the export, so no verdict speaks for it" in ran.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what is said where there is no GPU")
@pytest.mark.parametrize("variables", [{}, {"THEIR_KERNELS_DEVICE": "tpu"}, {"THEIR_KERNELS_DEVICE": "cpu"}])
def test_an_import_that_cannot_register_says_why_in_a_line(installed, tmp_path, variables):
    ran = python("import torch, triton\nimport their_kernels", installed[0], tmp_path, **variables)
    last = ran.stderr.strip().splitlines()[-1]
    assert ran.returncode == 1 and last.startswith("ImportError: their_kernels: ")


def test_a_package_lists_what_it_serves(installed):
    site, told = installed
    listed = json.loads((site / "their_kernels" / "overloads.json").read_text())["overloads"]
    assert sorted(listed) == sorted(told["overloads"]) and len(listed) > 200
    assert listed["aten::exp_"]["plan"]["base"] == "aten::exp" and "float32" in listed["aten::exp_"]["verified"]
    assert [listed[f"aten::{name}"]["draws"] for name in ("exp", "bernoulli_.float")] == [False, True]
    kernels = {p.relative_to(site / "their_kernels/kernels").as_posix() for p in site.rglob("kernels/*/*.py")}
    assert {entry["kernel"] for entry in listed.values()} <= kernels
    runtime = site / "their_kernels" / "runtime"
    copied = {p.relative_to(runtime).as_posix() for p in runtime.rglob("*.py") if p.name != "__init__.py"}
    assert {"enable/serve/server.py", "verify/contract/derive.py", "traces/overloads.py"} <= copied
    assert (runtime / "enable/serve/cpp/module.cpp").is_file()
    assert len(copied) <= 34 and all((ROOT / name).is_file() for name in copied)


def implementation(directory, operator):
    path = directory / operator / f"{operator}_implementation_v1.py"
    spec = importlib.util.spec_from_file_location(f"exported_{operator}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, f"{operator}_kernel_impl")


@pytest.fixture(scope="module")
def backendbench(tmp_path_factory):
    """Its files run in this process, by Triton's own interpreter."""
    place = tmp_path_factory.mktemp("backendbench")
    told = enable("--format", "backendbench", "--unverified", "out", "--json", cwd=place)
    assert told.returncode == 0, told.stderr
    return place / "out", json.loads(told.stdout)


X, Y = torch.linspace(-2, 2, 12).view(3, 4), torch.linspace(1, 2, 12).view(3, 4)


@pytest.mark.parametrize(
    "operator, args, kwargs",
    [
        ("exp", (X,), {}),
        ("gelu", (X,), {}),
        ("gelu", (X,), {"approximate": "tanh"}),
        ("add", (X, Y), {"alpha": 3}),
        ("add", (X, 2), {}),
        ("add", (X, 2, 3), {}),
        ("mul", (X, 2.5), {}),
        ("sum", (X,), {}),
        ("sum", (X, [0]), {}),
        ("sum", (X, 1, True), {}),
        ("mean", (X, [1]), {"keepdim": True}),
        ("mm", (X, Y.t()), {}),
        ("cat", ([X, Y], 1), {}),
        ("clamp", (X, -1, 1), {}),
        ("clamp", (X, None, 1.5), {}),
        ("zeros", ([2, 3],), {"dtype": torch.float16}),
        ("native_layer_norm", (X, [4], Y[0], Y[1], 1e-5), {}),
    ],
)
def test_backendbench_implementations_take_the_operators_arguments(backendbench, operator, args, kwargs):
    got = implementation(backendbench[0], operator)(*args, **kwargs)
    expected = getattr(torch.ops.aten, operator)(*args, **kwargs)
    torch.testing.assert_close(got, expected)


def test_backendbench_arguments_of_no_overload_are_refused(backendbench):
    with pytest.raises(TypeError, match="add: no overload takes 1 arguments"):
        implementation(backendbench[0], "add")(X)


def test_backendbench_has_a_directory_for_each_operator(backendbench):
    place, told = backendbench
    names = {p.name for p in place.iterdir()}
    assert all([p.name for p in (place / n).iterdir() if p.suffix] == [f"{n}_implementation_v1.py"] for n in names)
    assert names == {n.removeprefix("aten::").partition(".")[0] for n in told["overloads"]}
    assert told["left_out"]["aten::exp_"] == "derived from aten::exp"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["out"], "no kernel is verified in "),
        (["out", "--unverified", "--format", "wheel"], "unknown format 'wheel'; choose from package, backendbench"),
        (["out", "--unverified", "--name", "My Kernels"], "'My Kernels' cannot be the name of the package"),
        (["out", "--unverified", "--name", "class"], "'class' cannot be the name of the package"),
        (["full", "--unverified"], "full is not empty and holds no earlier export; name another directory"),
        (["full", "--unverified", "--force"], "full is not empty and holds no earlier export; name another directory"),
        ([".", "--unverified", "--force"], ". is the working directory or contains it; name another directory"),
        (["..", "--unverified", "--force"], ".. is the working directory or contains it; name another directory"),
        (["full/file", "--unverified"], "full/file is a file; name a directory"),
        (["out", "--op", "aten::_dirichlet_grad", "--unverified"], "the library has no kernel for it"),
        (["out", "--op", "aten::exp"], "aten::exp: its kernel is not verified in "),
    ],
)
def test_what_cannot_be_exported_is_one_line_and_writes_nothing(arguments, message, tmp_path, monkeypatch, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("theirs")
    monkeypatch.chdir(tmp_path)
    assert run(["--workspace", "ws", "export", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1 and message in told.err
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "full"]


def test_force_replaces_an_earlier_export(tmp_path):
    assert enable("full", "--unverified", "--op", "aten::log", cwd=tmp_path).returncode == 0
    (tmp_path / "full" / "file").write_text("added")
    (tmp_path / "full" / ".git").mkdir()
    project = enable("full", "--unverified", "--force", "--op", "aten::exp", cwd=tmp_path)
    assert (
        project.returncode == 2 and "full holds .git, which no export writes; name another directory" in project.stderr
    )
    (tmp_path / "full" / ".git").rmdir()
    refused = enable("full", "--unverified", "--op", "aten::exp", cwd=tmp_path)
    assert (
        refused.returncode == 2
        and "full holds an earlier export; name another directory, or replace it with --force" in (refused.stderr)
    )
    told = enable("full", "--unverified", "--force", "--op", "aten::exp", "--op", "aten::exp_", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert told.stdout == "full: 2 overloads served by 1 kernel file, unverified\n"
    assert sorted(p.name for p in (tmp_path / "full").iterdir()) == [
        "LICENSE",
        "README.md",
        "aten_kernels",
        "pyproject.toml",
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["full"]
    assert (
        "| `aten::exp_` | pointwise/exp.py | no floating dtype, bfloat16" in (tmp_path / "full/README.md").read_text()
    )


def test_a_known_failure_is_in_the_package(tmp_path):
    """Kernels without a passing verdict are exported on demand, and the package says what failed."""
    kernels = tmp_path / "ws" / "kernels" / "pointwise"
    kernels.mkdir(parents=True)
    (kernels / "sin.py").write_text((KERNELS / "pointwise" / "sin.py").read_text().replace("return sin(x)", "return x"))
    assert run(["--workspace", str(tmp_path / "ws"), "verify", "aten::sin", "--limit", "3"]) == 1
    result = enable("out", "--unverified", "--op", "aten::sin", cwd=tmp_path)
    assert result.returncode == 0 and "failed: 1 overload, such as aten::sin (WRONG in " in result.stdout
    row = next(line for line in (tmp_path / "out" / "README.md").read_text().splitlines() if "`aten::sin`" in line)
    assert "WRONG in " in row
