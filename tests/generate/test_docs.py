from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from generate import docs
from generate.docs import BUDGET, derivative_formulas, docstring, documentation, own_formulas, public_function
from verify.cases import opinfo

PUBLIC = {
    "gelu": "torch.nn.functional.gelu",
    "gelu_backward": "torch.nn.functional.gelu",
    "_log_softmax": "torch.nn.functional.log_softmax",
    "_log_softmax_backward_data": "torch.nn.functional.log_softmax",
    "native_layer_norm_backward": "torch.nn.functional.layer_norm",
    "embedding_dense_backward": "torch.nn.functional.embedding",
    "nll_loss_forward": "torch.nn.functional.nll_loss",
    "linalg_vector_norm": "torch.linalg.vector_norm",
    "_foreach_add": "torch.add",
    "_fused_adamw_": "torch.optim.AdamW",
    "_to_copy": "torch.Tensor.to",
    "uniform": "torch.Tensor.uniform_",
    "upsample_nearest_exact2d": "torch.nn.functional.interpolate",
    "reflection_pad2d_backward": "torch.nn.functional.pad",
    "_native_batch_norm_legit_no_training": "torch.nn.functional.batch_norm",
    "_unsafe_index": "torch.Tensor.index_put_",
    "_fft_r2c": "torch.fft.rfftn",
    "slow_conv_transpose3d": "torch.conv_transpose3d",
    "__lshift__": "torch.bitwise_left_shift",
    "_cummax_helper": "torch.cummax",
    "copy_": "torch.Tensor.copy_",
    "_scaled_dot_product_flash_attention_for_cpu_backward": "torch.nn.functional.scaled_dot_product_attention",
}


@pytest.mark.parametrize("base", PUBLIC)
def test_internal_names_lead_back_to_the_public_function(base):
    found = public_function(base)
    assert found is not None
    assert found[0] == PUBLIC[base]


def test_an_unknown_operator_has_no_documentation():
    assert public_function("no_such_operator") is None
    assert documentation("aten::no_such_operator") == ""


def test_docstrings_bring_those_they_refer_to():
    text = documentation("aten::argmax")
    assert text.startswith("## documentation: torch.argmax\n")
    assert "## it refers to: torch.max\n" in text
    assert text.count("\n## it refers to: torch.max\n") == 1, "cycles are cut"


def test_a_backward_overload_gets_its_forward_function_and_the_formula():
    text = documentation("aten::gelu_backward")
    assert "gelu(Tensor self, *, str approximate='none') -> Tensor\n      self: gelu_backward(grad, self," in text
    assert "## documentation of the forward function: torch.nn.functional.gelu\n" in text
    assert derivative_formulas("gelu") == []


def test_an_operator_without_a_docstring_gets_its_own_formulas():
    assert public_function("_trilinear") is None
    text = documentation("aten::_trilinear")
    assert text.startswith("## its derivative formulas") and 'i1, i2, i3: "_trilinear_backward(grad,' in text
    assert own_formulas("gelu")[0].startswith("gelu(Tensor self, *, str approximate='none')")
    assert "derivative formulas" not in documentation("aten::gelu"), "the docstring is enough"


def test_references_of_methods_are_followed():
    assert "## it refers to: torch.exp\n" in documentation("aten::exp_")


# what OpInfo reaches by name and torch says nothing of
UNDOCUMENTED = {"_chunk_cat", "mH", "mT", "scalar_tensor"}


def test_every_operator_that_opinfo_reaches_is_documented_within_the_budget(tmp_path):
    bases = {o.removeprefix("aten::").partition(".")[0] for o in opinfo.tested_overloads(tmp_path)}
    texts = {base: documentation(f"aten::{base}") for base in bases if not base.startswith("__get")}
    assert len(texts) > 600
    assert {base for base, text in texts.items() if not text} <= UNDOCUMENTED
    assert max(map(len, texts.values())) < BUDGET + 500  # headings


def test_every_overload_of_aten_has_a_text_within_the_budget_or_none():
    names = [n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::")]
    bases = {n.removeprefix("aten::").partition(".")[0] for n in names}
    sizes = [len(documentation(f"aten::{base}")) for base in sorted(bases)]
    assert len(sizes) > 1000 and max(sizes) < BUDGET + 500
    assert sum(size > 0 for size in sizes) > 0.8 * len(sizes)  # the rest: quantised, nested, sparse, tests, internals


def test_cycles_of_references_end(monkeypatch):
    """max -> maximum -> fmax -> max: each once, the nearest first."""
    texts = {
        "torch.max": "See :func:`torch.maximum` and :func:`torch.fmax`.",
        "torch.maximum": "Like :func:`torch.fmax`, :func:`torch.max`.",
        "torch.fmax": "Like :func:`torch.maximum`, :meth:`~Tensor.max`, :func:`torch.max`.",
    }
    monkeypatch.setattr(docs, "docstring", lambda name: texts.get(name, ""))
    text = documentation("aten::max")
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## documentation: torch.max",
        "## it refers to: torch.maximum",
        "## it refers to: torch.fmax",
    ]


def test_what_no_longer_fits_is_left_out(monkeypatch):
    texts = {
        "torch.max": "a :func:`torch.fmax` :func:`torch.maximum`",
        "torch.fmax": "b" * BUDGET,
        "torch.maximum": "c",
    }
    monkeypatch.setattr(docs, "docstring", lambda name: texts.get(name, ""))
    assert "it refers to: torch.maximum" in documentation("aten::max")
    assert "torch.fmax\n" not in documentation("aten::max")


def test_a_docstring_is_cleaned_and_cut():
    assert docstring("torch.nn.functional.no_such") == docstring("torch._C.anything") == ""
    assert docstring("torch.stft").endswith("\n[...]") and len(docstring("torch.stft")) <= docs.SHARE + 6
    assert ".. image::" not in docstring("torch.nn.GELU")


def test_the_state_machine_needs_no_torch():
    code = (
        "import sys, generate, generate.dialog, generate.docs, generate.recording, generate.llm.openai, "
        "generate.llm.replay; sys.exit(bool({'torch', 'triton', 'openai'} & sys.modules.keys()))"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
