"""`enable run --fused`: training with graphs in which one kernel serves a subgraph."""

import json
import shutil

import pytest

from generate.kernel_library import KERNELS

SMALL = ["nanogpt", "--fused", "--device", "cpu", "--batch", "2", "--optimizer", "sgd", "--unverified", "--compare"]
SMALL += [w for s in ("n_layer=1", "n_embd=16", "n_head=2", "block_size=8") for w in ("--set", s)]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")


def test_nanogpt_trains_with_fused_kernels(enable):
    status, out, _ = enable("run", *SMALL, "--steps", "2", "--json")
    found = json.loads(out)
    assert status == 0 and found["passed"] and len(found["loss"]) == 2 and not found["differing_steps"]
    fused = {(one["kind"], one["phase"]) for one in found["fusions"] if not one["reason"]}
    assert fused >= {
        ("product", "forward"),
        ("product", "backward"),
        ("reduction", "forward"),
        ("reduction", "backward"),
    }
    calls = {name: one["calls"] for name, one in found["served"].items() if name.startswith("fused::")}
    assert calls == {one["overload"]: 2 * one["times"] for one in found["fusions"]}


def test_a_fused_kernel_of_a_wrong_function_is_seen(enable, tmp_path):
    library = shutil.copytree(KERNELS, tmp_path / "library")
    kernel = library / "pointwise/gelu_backward.py"
    source = kernel.read_text()
    kernel.write_text(source.replace("0.5 * (1 + tl.erf", "0.5001 * (1 + tl.erf"))
    status, out, _ = enable("run", *SMALL, "--library", library)
    assert source != kernel.read_text() and status == 1 and "DIFFER" in out and "gelu_backward" in out


def test_a_device_without_graphs_is_told_in_a_line(enable):
    status, _, err = enable("run", "nanogpt", "--fused", "--device", "sim")
    assert status == 2 and err.count("\n") == 1 and "sim" in err
