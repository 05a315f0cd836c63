import pytest
import torch

from traces import UserError
from traces.overloads import bind, call, kind, name_of, resolve, uninitialised, unread, write_only, written


@pytest.mark.parametrize("name", ["aten::mm", "aten::add.Tensor", "aten::native_layer_norm", "aten::add.out"])
def test_names_go_both_ways(name):
    assert name_of(resolve(name)) == name


def test_names_of_dispatched_operators():
    assert name_of(torch.ops.aten.mm.default) == "aten::mm"
    assert name_of(torch.ops.aten.add.Tensor) == "aten::add.Tensor"


@pytest.mark.parametrize(
    "name",
    [
        "__import__('os').system('true')",
        "aten.mm.default",
        "aten::no_such_operator",
        "aten::add.NoSuchOverload",
        "load_library::mm",
        "_dir::clear",
        "aten::name",
        "aten::__class__",
        "",
        "aten::mm\n",
    ],
)
def test_unknown_names_are_refused_in_one_line(name):
    with pytest.raises(UserError) as error:
        resolve(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aten::mm", "compute"),
        ("aten::copy_", "compute"),
        ("aten::_to_copy", "compute"),
        ("aten::fill_.Scalar", "compute"),
        ("aten::zeros_like", "compute"),
        ("aten::arange.start", "compute"),
        ("aten::add_.Tensor", "compute"),
        ("aten::add.out", "compute"),
        ("aten::_foreach_add_.Scalar", "compute"),
        ("aten::_fused_adamw_", "compute"),
        ("aten::equal", "compute"),
        ("aten::clone", "compute"),
        ("aten::_coalesce", "compute"),
        ("aten::sparse_mask", "compute"),
        ("aten::_sparse_coo_tensor_with_dims_and_tensors.out", "compute"),
        ("aten::_sparse_coo_tensor_with_dims_and_tensors", "view"),
        ("aten::_coalesced_", "view"),
        ("aten::_values", "view"),
        ("aten::is_coalesced", "memory"),
        ("aten::view", "view"),
        ("aten::_unsafe_view", "view"),
        ("aten::unsafe_split.Tensor", "view"),
        ("aten::unsafe_split.Tensor_out", "compute"),
        ("aten::unsafe_split_with_sizes", "view"),
        ("aten::t", "view"),
        ("aten::transpose_", "view"),
        ("aten::split.Tensor", "view"),
        ("aten::expand", "view"),
        ("aten::detach", "view"),
        ("aten::_indices", "view"),
        ("aten::as_strided", "view"),
        ("aten::empty.memory_format", "memory"),
        ("aten::empty_like", "memory"),
        ("aten::new_empty_strided", "memory"),
        ("aten::resize_", "memory"),
        ("aten::set_.source_Tensor", "memory"),
        ("aten::_local_scalar_dense", "memory"),
        ("aten::is_same_size", "memory"),
        ("aten::is_coalesced", "memory"),
        ("aten::bernoulli_.float", "random"),
        ("aten::native_dropout", "random"),
        ("aten::randn", "random"),
    ],
)
def test_kind(name, expected):
    assert kind(resolve(name)) == expected


def test_attention_is_random_only_where_it_drops():
    op = resolve("aten::_scaled_dot_product_flash_attention_for_cpu")
    assert kind(op) == "compute"
    assert kind(op, {"dropout_p": 0.0}) == "compute"
    assert kind(op, {"dropout_p": 0.1}) == "random"


def test_written_and_write_only_arguments():
    assert written(resolve("aten::add_.Tensor")) == {"self"}
    assert write_only(resolve("aten::add_.Tensor")) == frozenset()
    assert write_only(resolve("aten::copy_")) == {"self"}
    assert write_only(resolve("aten::bernoulli_.float")) == {"self"}
    assert write_only(resolve("aten::mm.out")) == {"out"}
    assert written(resolve("aten::native_layer_norm.out")) == {"out0", "out1", "out2"}
    assert written(resolve("aten::_fused_adamw_")) == {"self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"}
    assert written(resolve("aten::mm")) == frozenset()


def test_unread_arguments():
    assert unread(resolve("aten::view")) == {"self", "size"}
    assert unread(resolve("aten::_local_scalar_dense")) == frozenset()
    assert unread(resolve("aten::copy_")) == {"self"}
    assert uninitialised(resolve("aten::empty_like"))
    assert not uninitialised(resolve("aten::zeros_like"))


def test_bind_fills_in_defaults_of_the_right_type():
    x = torch.ones(2)
    assert bind(resolve("aten::add.Tensor"), (x, x), {}) == {"self": x, "other": x, "alpha": 1}
    assert bind(resolve("aten::randperm"), (4,), {})["dtype"] is torch.int64
    assert bind(resolve("aten::contiguous"), (x,), {})["memory_format"] is torch.contiguous_format


def test_call_passes_keyword_only_arguments_by_name():
    op = resolve("aten::add.Tensor")
    x = torch.tensor([1.0, 2.0])
    assert call(op, {"self": x, "other": x, "alpha": 3}).tolist() == [4.0, 8.0]
