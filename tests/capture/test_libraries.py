"""Models of other libraries, where what those need is not all there."""

import os
import textwrap
from pathlib import Path

import pytest
from warm import python

from capture.libraries import import_library
from capture.settings import parse
from capture.transformers_target import _settings

ROOT = Path(__file__).parents[2]
# What a torchvision does that cannot load its operators: it says what shapes they give all the same.
TORCHVISION = """
import torch

@torch.library.register_fake("torchvision::nms")
def nms(dets, scores, iou_threshold):
    return dets.new_empty(0)
"""
PROGRAM = """
import torch
from capture.libraries import import_library

timm = import_library("timm", "timm")
try:
    torch.ops.torchvision.nms(torch.ones(1, 4), torch.ones(1), 0.5)
except NotImplementedError as error:
    print(timm.torchvision.__name__, "has no nms")
"""


def test_a_torchvision_of_another_torch_is_no_obstacle(tmp_path):
    for name, text in (("torchvision", TORCHVISION), ("timm", "import torchvision")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
    run = python("-c", textwrap.dedent(PROGRAM), cwd=ROOT, PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)]))
    assert run.stdout == "torchvision has no nms\n", run.stderr


def test_what_a_config_keeps_in_properties_can_be_set():
    pytest.importorskip("transformers", minversion="5.0")
    transformers = import_library("transformers", "hf")
    known = _settings("t", transformers.MixtralForCausalLM)
    assert parse("t", known, {"experts_implementation": "eager"}) == {"experts_implementation": "eager"}
