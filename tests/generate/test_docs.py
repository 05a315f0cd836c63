from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from generate.docs import BUDGET, derivative_formulas, documentation, public_function

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


@pytest.mark.parametrize("base", ["convolution_backward", "zeros", "_scaled_dot_product_flash_attention_for_cpu"])
def test_the_budget_holds(base):
    assert len(documentation(f"aten::{base}")) < BUDGET + 2_000


def test_the_state_machine_needs_no_torch():
    code = (
        "import sys, generate, generate.dialog, generate.docs, generate.recording, generate.llm.openai, "
        "generate.llm.replay; sys.exit(bool({'torch', 'triton', 'openai'} & sys.modules.keys()))"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
