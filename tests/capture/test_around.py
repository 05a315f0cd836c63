"""The examples of docs/around.md: typed as they stand there they show what the page says, and their traces hold it."""

import contextlib
import io
import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from shared import packaged
from warm import python

from enable.cli import run
from traces import Trace

ROOT, BIN = Path(__file__).parents[2], Path(sys.executable).parent
PAGE = (ROOT / "docs/around.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
SECTIONS = {text.partition("\n")[0]: BLOCK.findall(text) for text in PAGE.split("\n## ")[1:]}
JUDGED = "All of them, judged"
EXAMPLES = [title for title in SECTIONS if title != JUDGED]
TRACES = {
    "LoRA": ["lora-make"],
    "Gradient accumulation": ["accumulate-make"],
    "Activation checkpointing": ["checkpointed-make"],
    "torch.compile": ["compiled-make"],
    "DDP": ["ddp-rank0.trace", "ddp-rank1.trace"],
    "FSDP2": ["fsdp-make-rank0", "fsdp-make-rank1"],
    "Mixed precision with a GradScaler": ["scaled-make"],
    "torch.func": ["functional-make"],
    "Inference with a KV cache": ["generating-make"],
    "Quantised linear layers": ["quantized-make"],
}


def blocks(title, language):
    return [text for kind, text in SECTIONS[title] if kind == language]


def in_a_process(command):
    """As in the user's shell. Nothing warns."""
    path = os.pathsep.join((str(BIN), os.environ["PATH"]))
    own = {"PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": "inductor"}
    name, *rest = command
    done = python(*rest if name == "python" else (BIN / name, *rest), cwd=Path(), **own)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr, done.stderr
    return done.stdout


def in_this_process(command):
    """What runs no code of the user's."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run(command[1:]) == 0, command
    return out.getvalue()


def typed(command):
    words = shlex.split(command)
    own = words[:2] in (["enable", "trace"], ["enable", "coverage"])
    return in_this_process(words) if own else in_a_process(words)


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """Types the commands of a section, once; returns what they print. All sections share one directory."""
    directory, printed = tmp_path_factory.mktemp("around"), {}
    for title in SECTIONS:
        for source in blocks(title, "python"):
            (directory / re.match(r"# (\w+\.py)\n", source)[1]).write_text(source)

    def of(title):
        if title not in printed:
            printed[title] = "".join(typed(line) for text in blocks(title, "sh") for line in text.splitlines())
        return printed[title]

    with contextlib.chdir(directory), pytest.MonkeyPatch.context() as patch:
        patch.delenv("ENABLE_WORKSPACE", raising=False)
        yield of


@pytest.fixture
def traces(output):
    """The traces of an example."""

    def of(title):
        output(title)
        return [Trace.open(n if n.endswith(".trace") else f".enable/traces/{n}.trace") for n in TRACES[title]]

    return of


@pytest.fixture
def trace(traces):
    return lambda title: traces(title)[0]


def assert_shows(printed, lines):
    """Each of the lines is there, in this order; spaces do not count."""
    left = iter(printed.splitlines())
    for line in lines:
        found = any(line.split() == other.split() for other in left)
        assert found, f"{line!r} is not in this, or not where it should be:\n{printed}"


def calls(trace, overload):
    """How many, by phase."""
    found = [s for s in trace.signatures.values() if s.overload == overload]
    phases = {p for s in found for p in s.phases}
    return {p: sum(s.phases.get(p, 0) for s in found) for p in phases}


def test_the_page_has_an_example_of_each():
    assert list(TRACES) == EXAMPLES
    names = [re.match(r"# (\w+\.py)\n", source)[1] for title in EXAMPLES for source in blocks(title, "python")]
    assert len(set(names)) == len(names) == len(EXAMPLES)
    assert all(len(blocks(title, "sh")) == len(blocks(title, "text")) >= 1 for title in SECTIONS)
    assert all(len(line) <= 120 for title in EXAMPLES for line in blocks(title, "python")[0].splitlines())


def test_its_links_lead_somewhere():
    for page in ("around.md", "capture.md"):
        for target, anchor in re.findall(r"\]\((\w*(?:\.md)?)#([\w-]+)\)", (ROOT / "docs" / page).read_text()):
            headings = re.findall(r"^#+ (.*)$", (ROOT / "docs" / (target or page)).read_text(), re.M)
            assert anchor in {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}, (page, anchor)


@pytest.mark.parametrize("title", EXAMPLES)
def test_what_is_typed_shows_what_the_page_says(output, title):
    assert_shows(output(title), [line for text in blocks(title, "text") for line in text.splitlines()])


@pytest.mark.parametrize("title", EXAMPLES)
def test_the_traces_are_complete_and_replay_to_the_bit(traces, title):
    for name, trace in zip(TRACES[title], traces(title), strict=True):
        assert trace.manifest["state"] == "complete" and not trace.manifest["errors"]
        assert set(trace.manifest["levels"]) == {"full"} and set(trace.manifest["skipped"]) <= {"collectives"}
        assert all(s.overload.startswith("aten::") for s in trace.signatures.values())
        found = json.loads(in_this_process(["enable", "trace", "verify", name, "--json"]))
        assert not found["mismatches"] and set(found["not_comparable"]) <= {"uninitialised result"}, found


def records(trace, overload, phase=None):
    found = [r for r in trace.calls() if r.overload == overload and phase in (None, r.phase)]
    assert found, f"no {overload} in phase {phase}"
    return found


def shapes(record):
    """Of the tensors among the arguments, but numbers."""
    return {tuple(t["shape"]) for t in record.header["tensors"]} - {()}


def results(found):
    return [tuple(r.results["return"]["shape"]) for r in found]


def test_lora_asks_for_no_gradient_of_frozen_weights(trace):
    found = trace("LoRA")
    updated = [shapes(r) for r in found.calls() if r.phase == "optimizer"]
    assert set().union(*updated) == {(4, 8), (16, 4), (4, 16), (8, 4)}
    assert calls(found, "aten::addcdiv_") == {"optimizer": 4}
    backward = records(found, "aten::mm", "backward")
    assert len(backward) == 8 and not [s for s in results(backward) if set(s) == {8, 16}]
    assert {r.module for r in backward} == {"0.up", "0.down", "2.base", "2.up", "2.down"}
    assert not calls(found, "aten::sum.dim_IntList"), "the gradient of a bias"


def test_an_accumulating_step_is_one_step(trace):
    found = trace("Gradient accumulation")
    assert found.manifest["steps"] == 1
    assert calls(found, "aten::addmm") == {"forward": 8} and calls(found, "aten::nll_loss_backward") == {"backward": 4}
    assert calls(found, "aten::add_.Tensor") == {"backward": 3 * 4, "optimizer": 4}


def test_what_a_checkpoint_computes_again_is_backward(trace):
    found = trace("Activation checkpointing")
    assert calls(found, "aten::gelu") == {"forward": 2, "backward": 2}
    assert calls(found, "aten::gelu_backward") == {"backward": 2}
    assert calls(found, "aten::addmm") == {"forward": 5, "backward": 2}


def made_by_the_compiler():
    return [p for p in Path("inductor").rglob("*") if p.is_file()]


def test_nothing_is_compiled(trace):
    found = trace("torch.compile")
    assert calls(found, "aten::addmm") == {"forward": 2} and calls(found, "aten::gelu") == {"forward": 1}
    assert calls(found, "aten::_log_softmax") == {"loss": 1}
    assert found.manifest["info"]["limits"]["skip_steps"] == 0 and found.manifest["steps"] == 1
    assert not made_by_the_compiler()


def test_each_rank_of_ddp_has_a_trace_of_its_own(traces):
    first, second = traces("DDP")
    for found in (first, second):
        assert found.manifest["skipped"]["collectives"] >= 2 and found.manifest["steps"] == 2
        assert calls(found, "aten::mul.out") == {"backward": 8}
    inputs = [{r.contents[1] for r in records(t, "aten::addmm")} for t in (first, second)]
    assert not inputs[0] & inputs[1], "the ranks have batches of their own"
    updates = [records(t, "aten::add_.Tensor", "optimizer") for t in (first, second)]
    parameters = [[r.results["self"]["hash"] for r in found] for found in updates]
    assert parameters[0] == parameters[1] and len(parameters[0]) == 4


def test_fsdp_is_recorded_beneath_its_tensors_and_operators(traces):
    for found in traces("FSDP2"):
        assert found.manifest["skipped"]["collectives"] >= 4
        assert calls(found, "aten::_foreach_copy_") == {"forward": 2, "backward": 2}
        assert calls(found, "aten::split_with_sizes_copy.out") == {"forward": 2, "backward": 2}
        assert calls(found, "aten::_chunk_cat.out") == {"backward": 2}
        assert {(8, 16), (16, 8)} == {s[2] for s in map(_in_order, records(found, "aten::addmm"))}
        shards = [shapes(r) for r in records(found, "aten::addcdiv_")]
        assert sorted(set().union(*shards)) == [(4,), (4, 16), (8,), (8, 8)]


def _in_order(record):
    return [tuple(t["shape"]) for t in record.header["tensors"]]


def test_a_scaled_step_checks_and_unscales_gradients(trace):
    found = trace("Mixed precision with a GradScaler")
    assert calls(found, "aten::_amp_foreach_non_finite_check_and_unscale_") == {"clip": 1}
    assert calls(found, "aten::_amp_update_scale_") == calls(found, "aten::_local_scalar_dense") == {"optimizer": 1}
    assert all({t["dtype"] for t in r.header["tensors"]} == {"float16"} for r in records(found, "aten::addmm"))


def test_vmap_is_recorded_batched(trace):
    found = trace("torch.func")
    assert sorted(results(records(found, "aten::bmm", "backward"))) == [(6, 8, 16), (6, 16, 8)]
    assert calls(found, "aten::tanh_backward") == {"backward": 1}


def test_a_cache_grows_token_by_token(trace):
    found = trace("Inference with a KV cache")
    assert calls(found, "aten::argmax") == {"forward": 3}
    assert {r.phase for r in found.calls()} == {"forward"} and "aten::linear" not in map(_overload, found.calls())
    assert [s[-1] for s in results(records(found, "aten::_safe_softmax"))] == [5, 6, 7]
    assert (2, 2, 7, 8) in results(records(found, "aten::cat"))


def _overload(record):
    return record.overload


def test_quantised_weights_are_plain_integers(trace):
    found = trace("Quantised linear layers")
    copies = records(found, "aten::_to_copy")
    assert {t["dtype"] for r in copies for t in r.header["tensors"]} == {"int8"}
    assert [r.results["return"]["dtype"] for r in copies] == ["float32"] * 2
    assert results(records(found, "aten::mm")) == [(6, 16), (6, 8)]
    assert all(packaged().match(name) for name in ("aten::_int_mm", "aten::_weight_int8pack_mm"))


def test_the_library_has_all_that_some_ask_for(output):
    """Of plain operators, of lists of tensors and of integers. That of the others is swept."""
    titles = ("Activation checkpointing", "FSDP2", "Quantised linear layers")
    for title in titles:
        output(title)
    names = [TRACES[title][0] for title in titles]
    found = json.loads(in_this_process(["enable", "coverage", *names, "--json"]))
    assert [model["name"] for model in found["models"]] == names
    for model in found["models"]:
        told = f"{model['overloads']['covered']} of {model['overloads']['compute']} overloads (100.0 %)"
        assert f"\n{model['name']}: {told}" in PAGE and model["calls"]["percent"] == 100, model


@pytest.mark.sweep
def test_the_library_has_all_that_they_ask_for(output):
    """And trains some of them."""
    for title in EXAMPLES:
        output(title)
    assert_shows(output(JUDGED), [line for text in blocks(JUDGED, "text") for line in text.splitlines()])
    names = [TRACES[title][0] for title in EXAMPLES]
    found = json.loads(in_this_process(["enable", "coverage", *names, "--json"]))
    assert [model["name"] for model in found["models"]] == names
    for model in found["models"]:
        assert model["overloads"]["percent"] == model["calls"]["percent"] == 100, model
        assert model["of_cpus"] == {"overloads": 0, "calls": 0}
    assert not made_by_the_compiler()
