"""Sizes of each argument varied apart from the others', and ATen as the judge of which calls make sense."""

from dataclasses import replace

import pytest
import torch
from shared import packaged

from traces.values import unpack
from verify.cases import oracle
from verify.cases.case import case_of_values
from verify.cases.extended import extended
from verify.cases.oracle import stands
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job
from verify.outcome import Outcome

ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"


SHORT = {"value": (2, 2, 1, 8), "grad_out": (2, 2, 8, 1)}


def attention(query=4, key=4, value=4, length=5, queries=5):
    q, k, v = (torch.randn(2, heads, n, 8) for heads, n in ((query, queries), (key, length), (value, length)))
    return {"query": q, "key": k, "value": v, "dropout_p": 0.0, "is_causal": False, "attn_mask": None, "scale": None}


def backward(**sizes):
    given = attention(**sizes)
    out, logsumexp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        *(given[n] for n in ("query", "key", "value"))
    )
    return {**given, "grad_out": torch.randn(out.shape), "out": out, "logsumexp": logsumexp}


@pytest.mark.parametrize(
    "sizes, sound",
    [
        ({}, True),
        ({"key": 2, "value": 2, "length": 6}, True),
        ({"key": 3, "value": 3}, False),  # reads a head that is not there
        ({"key": 8, "value": 8}, False),  # divides by zero
        ({"value": 2}, False),
    ],
)
def test_aten_is_asked_where_it_can_do_no_harm(sizes, sound):
    assert stands(ATTENTION, attention(**sizes)) == sound


def test_what_was_read_of_fresh_memory_is_no_answer():
    """A value shorter than its key: its gradient is written, and read, beyond its end."""
    for seed in range(10):
        torch.manual_seed(seed)
        sizes = {"query": 2, "key": 2, "value": 2, "length": 8, "queries": 8}
        given = {name: t.bfloat16() if isinstance(t, torch.Tensor) else t for name, t in backward(**sizes).items()}
        given |= {"logsumexp": given["logsumexp"].float(), "is_causal": True}
        given |= {name: given[name].transpose(1, 2).contiguous().transpose(1, 2) for name in ("query", "key", "out")}
        assert stands(f"{ATTENTION}_backward", given)
        given |= {name: torch.randn(shape).bfloat16() for name, shape in SHORT.items()}
        assert not stands(f"{ATTENTION}_backward", given)


def test_a_result_that_aten_does_not_write_is_no_answer():
    """Of no rows multi_margin_loss hands on the memory that it took; the mean of no squares is NaN."""
    given = {"self": torch.empty(0, 5), "reduction": 1}
    classes = {"target": torch.empty(0, dtype=torch.int64), "p": 1, "margin": 1.0, "weight": None}
    assert not stands("aten::multi_margin_loss", {**given, **classes})
    assert stands("aten::mse_loss", {**given, "target": torch.empty(0, 5)})


def test_fewer_key_heads_than_query_heads_are_found():
    """From a case of equal numbers; nothing is made of sizes of which ATen leaves a part out."""
    shapes = []
    for variant in extended([case_of_values(ATTENTION, **attention())], 1):
        given = unpack(variant.case.load())
        assert given["key"].shape == given["value"].shape and given["query"].shape[0] == given["key"].shape[0]
        shapes.append((given["query"].shape[1], given["key"].shape[1]))
    assert any(heads > of_keys >= 1 for heads, of_keys in shapes)


def test_sizes_are_broadcast_where_an_operator_does_so_and_only_there():
    x = torch.randn(3, 4)
    added = [unpack(v.case.load()) for v in extended([case_of_values("aten::add.Tensor", self=x, other=x, alpha=1)], 1)]
    assert any(a["self"].shape == x.shape and a["other"].shape in ((1, 4), (3, 1)) for a in added)
    softmax = {"grad_output": x, "output": x.softmax(1), "dim": 1, "input_dtype": torch.float32}
    for variant in extended([case_of_values("aten::_softmax_backward_data", **softmax)], 1):
        given = unpack(variant.case.load())
        assert given["grad_output"].shape == given["output"].shape


X = torch.rand(4, 6)
NORM = {"normalized_shape": [6], "mean": X[:, :1], "rstd": X[:, :1], "weight": None, "bias": None}
ADAM = {name: [X.clone()] for name in ("self", "grads", "exp_avgs", "exp_avg_sqs")}
ADAM |= {"max_exp_avg_sqs": [], "state_steps": [torch.ones(())], "lr": 0.1, "beta1": 0.9, "beta2": 0.99}
ADAM |= {"weight_decay": 0.0, "eps": 1e-8, "amsgrad": False, "maximize": False}


@pytest.mark.parametrize(
    "overload, arguments",
    [
        ("_log_softmax_backward_data", {"grad_output": X, "output": X.log(), "dim": 1, "input_dtype": torch.float32}),
        ("native_layer_norm_backward", {"grad_out": X, "input": X, **NORM, "output_mask": [True, False, False]}),
        ("_fused_adamw_", ADAM),
    ],
)
def test_no_call_is_made_of_sizes_that_aten_only_happens_to_take(overload, arguments):
    """It reads as many elements as it wants from where a tensor begins, and leaves out the end of what is longer."""
    made = [unpack(v.case.load()) for v in extended([case_of_values(f"aten::{overload}", **arguments)], 1)]
    alike = [name for name in arguments if tensor_of(arguments[name]).shape == X.shape]
    assert len(made) > 8 and len(alike) > 1
    assert all(len({tensor_of(each[name]).shape for name in alike}) == 1 for each in made)


def tensor_of(value):
    """It, or the first of a list; a number where there is none."""
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, torch.Tensor) else torch.zeros(())


def test_what_aten_warns_of_is_no_answer():
    """Losses of sizes that do not fit are computed, and the mean is taken of the first few."""
    given = {"target": torch.rand(5, 5, 5), "weight": None, "reduction": 1}
    assert stands("aten::binary_cross_entropy", {**given, "self": torch.rand(5, 5, 5)})
    assert not stands("aten::binary_cross_entropy", {**given, "self": torch.rand(5, 1, 1)})


def test_attention_of_fewer_key_heads(judge):
    """The library's kernels are right, and one that takes the head of its query is found out."""
    library, (case, gradient) = (
        packaged(),
        (
            case_of_values(ATTENTION, **attention(key=2, value=2, length=6)),
            case_of_values(f"{ATTENTION}_backward", **backward(key=2, value=2, length=6)),
        ),
    )
    kernel = library.match(ATTENTION).kernel
    wrong = KernelFile.parse(kernel.source.replace("h // GROUP", "h"), kernel.path)
    jobs = [Job(Plan(c.overload, c.overload), library.match(c.overload).kernel, (c,)) for c in (case, gradient)]
    assert {v.outcome for v in judge.judge(jobs).values()} == {Outcome.PASS}
    assert [v.outcome for v in judge.judge([replace(jobs[0], kernel=wrong)]).values()] == [Outcome.WRONG]


@pytest.mark.parametrize(("size", "stride", "sound"), [((2, 2), (2, 1), True), ((2, 2), (1, 1), False)])
def test_of_elements_written_to_one_place_nobody_says_which_stays(size, stride, sound):
    call = {"self": torch.zeros(6), "src": torch.ones(size), "size": size, "stride": stride, "storage_offset": 1}
    assert stands("aten::as_strided_scatter", call) is sound
    assert not stands("aten::as_strided_scatter", {**call, "storage_offset": 4}), "behind the storage's end"


SEGMENTS = {"data": (5, 3), "reduce": "sum", "lengths": [2, 3], "offsets": None, "axis": 0, "initial": None}


@pytest.mark.parametrize(
    ("changed", "sound"),
    [
        ({}, True),
        ({"lengths": [2, 1]}, True),
        ({"lengths": [2, 9]}, False),
        ({"lengths": None, "offsets": [0, 2, 5]}, True),
        ({"lengths": None, "offsets": [0, 2, 6]}, False),
        ({"lengths": [[2, 1]], "axis": 1}, False),
        ({"output": (3, 3)}, False),
    ],
)
def test_segments_lie_within_their_data(changed, sound):
    call = {**SEGMENTS, **changed}
    for name in ("lengths", "offsets"):
        call[name] = None if call[name] is None else torch.tensor(call[name])
    call["data"] = torch.ones(call["data"])
    results = {name: torch.ones(call.pop("output", (2, 3))) for name in ("grad", "output")}
    unsafe = {"indices": None, "unsafe": True}
    assert "output" in changed or stands("aten::segment_reduce", {**call, **unsafe}) is sound
    assert stands("aten::_segment_reduce_backward", {**call, **results}) is sound


@pytest.mark.parametrize("label, sound", [(2, True), (7, False), (-1, False)])
def test_labels_are_those_that_there_are_probabilities_of(label, sound):
    """7 of 5 is the next sequence's 2."""
    call = {"log_probs": torch.randn(4, 2, 5).log_softmax(2), "targets": torch.tensor([[1, label], [1, 2]])}
    call |= {"input_lengths": [4, 4], "target_lengths": [2, 2], "blank": 0}
    assert stands("aten::_ctc_loss", {**call, "zero_infinity": False}) is sound
    losses, alpha = torch.ops.aten._ctc_loss(call["log_probs"], torch.tensor([[1, 2], [1, 2]]), [4, 4], [2, 2])
    given = {"grad": torch.ones(2), **call, "neg_log_likelihood": losses, "log_alpha": alpha, "zero_infinity": False}
    assert stands("aten::_ctc_loss_backward", given) is sound


@pytest.mark.parametrize(
    "changed, sound", [({}, True), ({"mode": -1}, False), ({"mode": 3}, False), ({"size": -2}, False)]
)
def test_bags_have_a_known_mode_and_no_negative_size(changed, sound):
    indices, offsets = torch.tensor([0, 2, 1, 3]), torch.tensor([0, 2])
    call = {"grad": torch.ones(2, 3), "indices": indices, "offsets": offsets, "offset2bag": torch.tensor([0, 0, 1, 1])}
    call |= {
        "bag_size": torch.tensor([2, changed.get("size", 2)]),
        "maximum_indices": torch.zeros(2, dtype=torch.int64),
    }
    call |= {"num_weights": 4, "scale_grad_by_freq": False, "mode": changed.get("mode", 1), "sparse": False}
    assert stands("aten::_embedding_bag_backward", {**call, "per_sample_weights": None, "padding_idx": -1}) is sound


IMAGE, WINDOW = torch.ones(2, 3, 4, 4), torch.ones(3, 2, 2, 2)
BACKWARD = {
    "grad_output": torch.ones(2, 2, 5, 5), "input": IMAGE, "weight": WINDOW, "bias_sizes": [2], "stride": [1, 1],
    "padding": [0, 0], "dilation": [1, 1], "transposed": True, "output_padding": [0, 0], "groups": 1,
    "output_mask": [True, True, True],
}  # fmt: skip
NORM = {
    "input": IMAGE, "weight": torch.ones(3), "bias": torch.ones(3), "running_mean": torch.ones(3),
    "running_var": torch.ones(3), "training": True, "momentum": 0.1, "eps": 1e-5,
}  # fmt: skip
SOFTMAX = {"grad_output": torch.ones(2, 3), "output": torch.full((2, 3), 1 / 3), "dim": 1}
LEAST = {"self": torch.tensor([[1.0, 2], [3, 1], [1, 1]]), "b": torch.ones(3, 1), "rcond": None, "driver": "gels"}


@pytest.mark.parametrize(
    ("overload", "call", "changed"),
    [
        ("aten::convolution_backward", BACKWARD, {"grad_output": torch.ones(4, 2, 5, 5)}),
        ("aten::_native_batch_norm_legit", NORM, {"running_mean": torch.ones(4)}),
        ("aten::_log_softmax_backward_data", {**SOFTMAX, "input_dtype": torch.float32}, {"input_dtype": torch.bool}),
        ("aten::linalg_lstsq", LEAST, {"self": LEAST["self"] * 1e-39}),  # denormal
        ("aten::linalg_lstsq", LEAST, {"self": torch.tensor([[1.0, 1], [2, 2], [3, 3]])}),  # of rank 1
    ],
)
def test_calls_that_aten_answers_and_its_documentation_does_not_allow(overload, call, changed):
    assert stands(overload, call)
    assert not stands(overload, {**call, **changed})


def test_a_call_that_ran_out_of_time_is_asked_again(monkeypatch):
    call = {"self": torch.full((3, 3), 0.625)}
    with monkeypatch.context() as patch:
        patch.setattr(oracle._ORACLE, "_seconds", 0.0)
        assert not stands("aten::sinh", call)
    assert stands("aten::sinh", call)
