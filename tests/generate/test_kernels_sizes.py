"""Calls with sizes that do not fit, which nothing before a kernel refuses, are refused by its wrapper before a launch:
a kernel that took a size from one argument and used it for another would read foreign memory."""

import pytest
import torch

from enable.arguments import refusal
from enable.kernel_modules import load_wrapper
from generate.library import KERNELS
from traces.overloads import bind, resolve

CPU = "aten::_scaled_dot_product_flash_attention_for_cpu"


def r(*shape):
    return torch.randn(shape)


def i(*shape):
    return torch.zeros(*shape, dtype=torch.int64)


def heads(query, key, value):
    return r(2, query, 5, 8), r(2, key, 6, 8), r(2, value, 6, 8)


def bags(**other):
    fitting = {"grad": r(2, 3), "indices": i(6), "offsets": i(2), "offset2bag": i(6), "bag_size": i(2)}
    more = {"maximum_indices": i(2, 3), "num_weights": 4, "scale_grad_by_freq": False, "mode": 0, "sparse": False}
    return fitting | more | {"per_sample_weights": None} | other


CALLS = {
    "key heads do not divide query heads": (CPU, heads(4, 3, 3)),
    "more key heads than query heads": (CPU, heads(2, 4, 4)),
    "fewer value heads than key heads": (CPU, heads(4, 4, 2)),
    "values shorter than keys": (CPU, (r(2, 4, 5, 8), r(2, 4, 6, 8), r(2, 4, 5, 8))),
    "one batch of keys": (CPU, (r(2, 4, 5, 8), r(1, 4, 6, 8), r(1, 4, 6, 8))),
    "gradient of other heads": (
        f"{CPU}_backward",
        (r(2, 2, 5, 8), *heads(4, 4, 4), r(2, 4, 5, 8), r(2, 4, 5), 0.0, False),
    ),
    "softmax": ("aten::_softmax_backward_data", (r(2, 1), r(2, 3), 1, torch.float32)),
    "log_softmax": ("aten::_log_softmax_backward_data", (r(1, 3), r(2, 3), 1, torch.float32)),
    "layer norm": (
        "aten::native_layer_norm_backward",
        (r(2, 1), r(2, 5), [5], r(2, 1), r(2, 1), None, None, [True, False, False]),
    ),
    "statistics": (
        "aten::native_layer_norm_backward",
        (r(4, 5), r(4, 5), [5], r(1, 1), r(4, 1), None, None, [True, False, False]),
    ),
    "embedding": ("aten::embedding_dense_backward", (r(2, 3), i(5), 4, -1, False)),
    "index_select": ("aten::index_select", (r(), 0, i(2))),
    "mask": ("aten::index.Tensor", (r(4, 3), [torch.ones(6, dtype=torch.bool)])),
    "mask of two dimensions": ("aten::index_put", (r(4, 3), [torch.ones(4, 5, dtype=torch.bool)], r())),
    "gradient of bags": ("aten::_embedding_bag_backward", bags(offset2bag=i(3))),
    "weights of bags": ("aten::_embedding_bag_dense_backward", bags(per_sample_weights=r(2))),
    "gradient of weights": (
        "aten::_embedding_bag_per_sample_weights_backward",
        (r(2, 3), r(4, 3), i(6), i(2), i(3), 0),
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_sizes_that_do_not_fit(call):
    overload, given = CALLS[call]
    op = resolve(overload)
    names = [a.name for a in op._schema.arguments]
    given = given if isinstance(given, dict) else dict(zip(names, given, strict=False))
    arguments = bind(op, (), {name: value for name, value in given.items() if name in names})
    positional = [arguments[a.name] for a in op._schema.arguments if not a.kwarg_only]
    named = {a.name: arguments[a.name] for a in op._schema.arguments if a.kwarg_only}
    assert refusal(op, tuple(positional), named) is None, "ATen's function for device meta would refuse it before"
    (path,) = KERNELS.glob(f"*/{overload.removeprefix('aten::').partition('.')[0]}.py")
    with pytest.raises((RuntimeError, IndexError)):  # NotImplementedError, where ATen may take it, is a RuntimeError
        load_wrapper(path)(*positional, **named)
