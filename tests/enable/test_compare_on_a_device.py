"""Trainings on a GPU beside the CPU's. With one: pytest -m gpu tests/enable/test_compare_on_a_device.py"""

import json

import pytest
import torch

from enable.cli import run

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("ignore:Memory Efficient attention:UserWarning"),
]
SMALL = [w for s in ("n_layer=2", "n_embd=32", "n_head=2", "block_size=16") for w in ("--set", s)]


def compared(tmp_path, capfd, *words):
    words = ("run", *words, "--device", "cuda", "--compare", "--unverified", "--json")
    status = run(["--workspace", str(tmp_path), *words])
    out, err = capfd.readouterr()
    assert status == 0, out + err
    return json.loads(out)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw-fused"])
def test_dropout_is_compared_by_what_the_gpu_dropped(tmp_path, capfd, optimizer):
    found = compared(
        tmp_path, capfd, "nanogpt", *SMALL, "--set", "dropout=0.2", "--optimizer", optimizer, "--steps", "3"
    )
    assert found["not_compared"] is None and found["passed"] and len(found["reference_loss"]) == 3
    drew = {o for o in found["served"] if "dropout" in o or "attention" in o}
    assert len(drew) == 4, found["served"]  # both forward and backward


def test_convolutions_are_compared_in_full_precision(tmp_path, capfd):
    pytest.importorskip("timm")
    found = compared(tmp_path, capfd, "timm:resnet18", "--steps", "3")
    assert found["float32_products"]["conv"] == "tf32" and found["passed"]
    precisions = {row["precision"] for overload, row in found["fallbacks"].items() if "convolution" in overload}
    assert precisions == (set() if "aten::convolution" in found["served"] else {"float32"}), found["fallbacks"]
