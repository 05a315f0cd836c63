"""The shipped dialects for files of others: the corpus under lint, what a profile inherits, and `enable lint`."""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from corpus import HONEST, bad_kernels
from torch.testing._internal.common_methods_invocations import op_db

from enable.cli import run
from generate import BLOCKS
from traces import UserError
from verify.lint import lint, lint_text, load_profile, render
from verify.lint import profile as profiles

ROOT = Path(__file__).parents[2]
BAD = bad_kernels()
ANY, MTIA = (load_profile(name).with_blocks(BLOCKS) for name in ("triton-cuda", "mtia-like"))
OUTCOMES = {"CHEAT", "WRONG", "COMPILE_ERROR", "RUNTIME_ERROR", "CRASH", "TIMEOUT"}

# The rules that speak about the bad files of one family; any one of them is enough for a file.
FAMILIES = {
    "A": {"name", "attribute", "construct"},
    "B": {"builtin", "name", "module-value", "construct", "default-argument"},
    "C": {"tensor-operator", "tensor-builtin", "tensor-indexing", "attribute", "module-state"},
    "D": {"import", "attribute", "readback", "name"},
    "E": {"launch-argument", "module-state", "attribute", "scope"},
    "F": {"name"},
    "G": {"module-state", "default-argument", "assignment", "name"},
    "I": {"module-state", "attribute"},
    "J": {"module-state", "argument", "name", "attribute"},
    "K": {"introspection", "module-state", "import", "name", "assignment"},
    "L": {"introspection", "name", "builtin", "import"},
    "M": {"introspection", "name", "builtin", "import"},
    "N": {"name", "builtin", "import", "unroll", "module-state"},
    "O": {"name", "import"},
    "P": {"builtin"},
    "Q": {"lambda", "argument", "annotation", "module-value", "module-state", "syntax", "depth", "name", "dtypes"},
    "R": {"introspection", "name"},
    "S": {"assignment"},
    "T": {"name", "module-state", "import"},
}


def header(text: str) -> dict[str, str]:
    return dict(re.findall(r"^# ([\w -]+?): (.*)$", text, re.MULTILINE))


@pytest.mark.parametrize("name", BAD)
def test_header_of_a_bad_kernel(name):
    said = header(BAD[name])
    assert {"op", "family", "tries", "should be caught by", "outcome", "layer"} <= said.keys()
    assert set(said["outcome"].split("|")) <= OUTCOMES
    assert re.fullmatch("[A-U]", said["family"])


def test_the_corpus_covers_every_family():
    families = {header(text)["family"] for text in BAD.values()}
    assert families == set("ABCDEFGHIJKLMNOPQRSTU")
    assert len(BAD) >= 80
    assert len(HONEST) >= 30


def test_operators_of_the_corpus_have_samples_and_an_aten_operator():
    known = {info.name for info in op_db}
    for text in (*BAD.values(), *(path.read_text() for path in HONEST)):
        name = header(text)["op"]
        name = name.removeprefix("aten::").partition(".")[0] if name.startswith("aten::") else name
        assert name in known
        assert hasattr(torch.ops.aten, name.rpartition(".")[2]), name


@pytest.mark.parametrize("path", HONEST, ids=lambda p: p.stem)
def test_honest_files_are_clean(path):
    assert render(lint_text(path.read_text(), ANY)) == ""


@pytest.mark.parametrize("name", BAD)
def test_lint_sees_what_the_header_says(name):
    said = header(BAD[name])
    rules = {v.rule for v in lint_text(BAD[name], ANY)}
    if "lint" in said["layer"].split(", "):
        assert rules & FAMILIES[said["family"]], rules
    else:
        assert not rules


def bare(body: str, kernel: str = "tl.store(o_ptr, tl.load(x_ptr))", before: str = "") -> str:
    """A plain answer: one kernel, one wrapper, no imports."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    kernel = "".join(f"    {line}\n" for line in kernel.splitlines())
    head = f"{before}\n\n@triton.jit\ndef kernel(x_ptr, o_ptr, n, B: tl.constexpr = 8):\n{kernel}"
    return f"{head}\n\ndef wrapper(input, other=None):\n{lines}"


STYLES = {
    "grid function": bare("def grid(meta):\n    return (triton.cdiv(input.numel(), meta['B']),)\nkernel[grid](input)"),
    "typing": bare("return input", before="from typing import Optional, Tuple\nimport torch.nn.functional as F"),
    "names from modules": bare("return empty_like(input)", before="from torch import empty_like, Tensor"),
    "table of kernels": bare("T['a'][(1,)](input)").replace("def wrapper", "T = {'a': kernel}\n\n\ndef wrapper"),
    "dtype for the kernel": bare("kernel[(1,)](input, n=tl.float32)"),
    "slices": bare("o = torch.zeros_like(input)\nkernel[(1,)](input[0], o[..., 1:])\no[0] = 0\nreturn o"),
    "one number": bare("n = torch.zeros(1, dtype=torch.int64)\nkernel[(1,)](n)\nreturn torch.empty(int(n))"),
    "on a device": bare("with torch.cuda.device(input.device):\n    kernel[(1,)](input)\nreturn input"),
    "variadic": bare("return input").replace("other=None", "*rest, **options"),
    "library style": (ROOT / "generate/examples/exp.py").read_text(),
}  # fmt: skip


@pytest.mark.parametrize("name", STYLES)
def test_honest_styles_of_others(name):
    assert render(lint(STYLES[name], ANY)) == ""


CHEATS = {
    "tensor-operator": bare("x = input.contiguous()\nreturn 1 - input"),
    "tensor-indexing": bare("o = input.clone()\no[o < 0] = 0\nreturn o"),
    "readback": bare("return [input[k].item() for k in range(input.numel())]"),
    "module-state": bare("TABLE[input.shape] = input\nreturn input", before="TABLE = {}"),
    "import": bare("return input", before="from torch import exp"),
    "decorator": bare("return input").replace("@triton.jit", "@triton.jit(launch_metadata=print)\n", 1),
    "argument": bare("return input").replace(
        "@triton.jit", "@triton.autotune([triton.Config({}, pre_hook=print)], key=[])\n@triton.jit"
    ),
    "attribute": bare("return input").replace(
        "@triton.jit", "@triton.heuristics({'E': lambda a: a['x_ptr'].sum() > 0})\n@triton.jit"
    ),
    "construct": bare("def f(x):\n    y = x\n    return y\nreturn f(input)"),
    "lambda": bare("kernel[lambda meta: (input.contiguous().numel(),)](input)"),
    "assignment": bare("kernel.seen = input\nreturn input"),
    "kernel-global": bare("return input", "tl.store(o_ptr, K)", before="K: tl.constexpr = 3"),
    "module-value": bare("for library in [torch]:\n    input = library.exp(input)\nreturn input"),
}


@pytest.mark.parametrize("rule", CHEATS)
def test_what_the_permissive_profile_still_refuses(rule):
    assert rule in {v.rule for v in lint(CHEATS[rule], ANY)}


def test_aliased_tables_are_state():
    sneaky = bare("t = TABLE\nt[0] = input\nreturn input", before="TABLE = {0: 1}")
    assert {v.rule for v in lint(sneaky, ANY)} == {"module-state"}


MTIA_ONLY = {
    "scatter-store": "i = tl.arange(0, B)\nat = tl.load(x_ptr + i)\ntl.store(o_ptr + at + i, 1.0)",
    "half-maths": "i = tl.arange(0, B)\nx = tl.load(x_ptr + i)\ntl.store(o_ptr + i, tl.exp(x))",
    "alignment": "i = tl.arange(0, B)\ntl.store(o_ptr + i, tl.load(x_ptr + i + 1).to(tl.float32))",
    "name": "tl.store(o_ptr, tl.load(x_ptr).to(tl.float64))",
}


@pytest.mark.parametrize("rule", MTIA_ONLY)
def test_what_the_device_cannot_do(rule):
    source = bare("kernel[(1,)](input)", MTIA_ONLY[rule])
    assert [v.rule for v in lint(source, MTIA)] == [rule]
    assert lint(source, ANY) == []


def test_log1p_is_answered_with_what_to_write():
    found = render(lint(bare("return input", "tl.store(o_ptr, tl.log1p(tl.load(x_ptr).to(tl.float32)))"), MTIA))
    assert "[name] tl.log1p" in found
    assert "tl.log(1 + x)" in found


def test_loaded_offsets_are_followed_through_a_helper_and_conversion_is_seen():
    helper = "@triton.jit\ndef put(o_ptr, at, x):\n    tl.store(o_ptr + at, x)\n"
    body = "at = tl.load(x_ptr + tl.arange(0, B))\nput(o_ptr, at, 1.0)"
    assert [v.rule for v in lint(bare("return input", body, helper), MTIA)] == ["scatter-store"]
    body = "i = tl.arange(0, B)\nx = tl.load(x_ptr + i)\nx = x.to(tl.float32)\ntl.store(o_ptr + i, tl.exp(x) / 2)"
    assert lint(bare("return input", body), MTIA) == []


def test_short_blocks_are_told_where_they_are_launched():
    body = "i = tl.arange(0, B)\ntl.store(o_ptr + i, tl.load(x_ptr + i))"
    found = lint(bare("kernel[(1,)](input, B=4)", body), MTIA)
    assert [(v.rule, "B=4" in v.problem) for v in found] == [("alignment", True)]


def test_profiles_inherit():
    base = load_profile("triton")
    assert base.wrapper_operators == frozenset()
    assert {"aten::zeros", "aten::clone", "aten::_local_scalar_dense"} <= ANY.wrapper_operators
    assert ANY.wrapper_operators == MTIA.wrapper_operators
    assert (base.alignment, ANY.alignment, MTIA.alignment) == (1, 1, 32)
    assert base.kernel.names < ANY.kernel.names
    assert ANY.kernel.names - MTIA.kernel.names == {"tl.float64"}
    assert ANY.instead("tl.tanh") == base.instead("tl.tanh")
    assert "float64" not in MTIA.dtypes


def test_the_wrapper_may_call_what_exists_and_nothing_that_computes():
    for name in ANY.wrapper_operators:
        operator, _, overload = name.removeprefix("aten::").partition(".")
        assert hasattr(getattr(torch.ops.aten, operator), overload or "default"), name
    assert not {"aten::add.Tensor", "aten::where.self", "aten::mm"} & ANY.wrapper_operators


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("version: 1\nname: x\nbase: nowhere\n", "unknown lint profile 'nowhere'"),
        ("version: 1\nname: x\nbase: triton\nremove: {dtypes: [float17]}\n", "'float17' is not in dtypes"),
        ("version: 1\nname: x\nbase: triton\nadd: {dtypes: [bool]}\n", "'bool' is already in dtypes"),
        ("version: 9\nname: x\nbase: triton\n", "unknown version"),
    ],
)
def test_bad_profiles_are_refused(tmp_path, monkeypatch, text, complaint):
    for path in profiles.DIRECTORY.glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "x.yaml").write_text(text)
    monkeypatch.setattr(profiles, "DIRECTORY", tmp_path)
    with pytest.raises(UserError, match=complaint):
        profiles._packaged.__wrapped__("x")


UNROLLED = "unroll", "gl.static_range of 9999 iterations"
GLUON = """import triton
import triton.experimental.gluon as gluon
import triton.experimental.gluon.language as gl
import triton.experimental.gluon.language.nvidia.hopper as hopper


@gluon.jit
def kernel(x_ptr, n, SIZE: gl.constexpr):
    i = gl.program_id(0) * SIZE + gl.arange(0, SIZE)
    hopper.fence_async_shared()


def wrapper(input):
    kernel[(1,)](input, 1, SIZE=32)
    return input
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("", "", None),
        ("gl.arange", "gl.arrange", ("name", "did you mean gl.arange?")),
        ("hopper.fence", "hopper.mbarrier.fence", ("name", "hopper.mbarrier.fence_async_shared is not in the dialect")),
        ("@gluon.jit", "@gluon.jit(noinline=True)", ("decorator", "decorator @gluon.jit(noinline=True)")),
        ("input, 1,", "input, gl.program_id(0),", ("scope", "gl.program_id outside a @triton.jit function")),
        ("gl.program_id(0)", "helper(0)", ("unknown-name", "helper is not defined")),
        ("return input", "return gl", ("module-value", "gl used as a value")),
        (
            "hopper.fence_async_shared()",
            "for k in gl.static_range(9999):\n        i += k",
            ("unroll", "of 9999 iterations"),
        ),
    ],
)
def test_gluon_is_a_language_of_kernels_on_nvidia(old, new, told):
    platform = ANY.of_platform(load_profile("triton-nvidia"))
    found = lint(GLUON.replace(old, new) if old else GLUON, platform)
    assert [v.rule for v in found] == ([told[0]] if told else []), found
    assert not told or told[1] in f"{found[0].problem} {found[0].instead}"


def test_a_file_without_gluon_may_call_its_own_names_so():
    own = bare("hopper = torch.empty_like(input)\nkernel[(1,)](input, hopper, 1)\nreturn hopper", "gl = tl.load(x_ptr)")
    assert render(lint(own, ANY.of_platform(load_profile("triton-nvidia")))) == render(lint(own, ANY)) == ""


def test_gluon_is_unknown_elsewhere():
    assert {v.rule for v in lint(GLUON, ANY)} >= {"import", "decorator"}


# -- the command -------------------------------------------------------------------------------------------------------


def test_clean_and_unclean_files(capsys, tmp_path):
    assert run(["lint", str(HONEST[0].with_name("exp_persistent_grid.py"))]) == 0
    assert "clean under triton-cuda" in capsys.readouterr().out
    (tmp_path / "bad.py").write_text(BAD["exp_direct_call"])
    assert run(["lint", str(tmp_path / "bad.py")]) == 1
    assert "[name] torch.exp is not allowed in host code (line 2" in capsys.readouterr().out


def test_a_platform_has_a_dialect(capsys, tmp_path):
    chip = tmp_path / "chip.yaml"
    chip.write_text("base: sim\nlint: {base: triton-cuda, remove: {kernel: {names: [tl.exp]}}}\n")
    path = str(HONEST[0].with_name("exp_persistent_grid.py"))
    assert run(["lint", path, "--platform", str(chip), "--json"]) == 1
    reply = json.loads(capsys.readouterr().out)
    assert reply["profile"] == str(chip) and "tl.exp is not in the dialect" in str(reply["violations"])


def test_json_and_profile(capsys):
    path = str(HONEST[0].with_name("masked_select_data_dependent_size.py"))
    assert run(["lint", path, "--profile", "mtia-like", "--json"]) == 1
    reply = json.loads(capsys.readouterr().out)
    assert (reply["clean"], reply["profile"]) == (False, "mtia-like")
    assert "scatter-store" in {v["rule"] for v in reply["violations"]}
    assert {"rule", "line", "what", "instead"} == reply["violations"][0].keys()


def test_an_answer_on_standard_input(capsys, monkeypatch):
    answer = f"Here it is:\n```python\n{bare('return torch.exp(input)')}```\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(answer.encode())))
    assert run(["lint", "-"]) == 1
    assert "[name] torch.exp" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((answer + answer).encode())))
    assert run(["lint", "-"]) == 1
    assert "[answer-format] 2 python blocks" in capsys.readouterr().out


def test_misuse(capsys, tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\0")
    for arguments, words in [
        ([str(tmp_path / "nowhere.py")], "No such file"),
        ([str(tmp_path)], "Is a directory"),
        ([str(tmp_path / "binary")], "not a text in UTF-8"),
        ([__file__, "--profile", "cuda99"], "choose one of: mtia-like, triton, triton-cuda"),
        ([__file__, "--platform", "cuda99"], "unknown platform 'cuda99'"),
        ([__file__, "--platform", "sim", "--profile", "triton"], "each name a dialect; leave one of them out"),
    ]:
        assert run(["lint", *arguments]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1


def test_lint_runs_nothing_and_needs_no_torch(tmp_path):
    code = "import sys; from enable.cli import run; run(['lint', sys.argv[1]]); sys.exit('torch' in sys.modules)"
    path = tmp_path / "bad.py"
    path.write_text(BAD["abs_crashes_on_import"])
    assert subprocess.run([sys.executable, "-c", code, path], cwd=ROOT, check=False, stdout=-3).returncode == 0


@pytest.mark.parametrize("path", HONEST, ids=lambda p: p.stem)
def test_the_device_profile_reads_every_file(path):
    known = {"scatter-store", "half-maths", "alignment", "name", "attribute", "dtypes"}
    assert {v.rule for v in lint(path.read_text(), MTIA)} <= known
    ast.parse(path.read_text())
