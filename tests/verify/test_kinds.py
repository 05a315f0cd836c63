"""What a verdict on one call says of another."""

import pytest
import torch

from traces.overloads import bind, resolve
from verify.cases.kinds import Judged, kind_of

X = torch.randn(4, 6)


def kind(overload, *args, **kwargs):
    return kind_of(bind(resolve(overload), args, kwargs))


def attention(heads, of_keys, queries=5, keys=5):
    q, k = torch.randn(3, heads, queries, 8), torch.randn(3, of_keys, keys, 8)
    return kind("aten::_scaled_dot_product_flash_attention_for_cpu", q, k, k)


def test_contents_numbers_and_how_large_a_size_is_make_no_difference():
    smaller = torch.zeros(2, 3)
    assert kind("aten::add.Tensor", X, X, alpha=2) == kind("aten::add.Tensor", smaller, smaller, alpha=5)


def test_sizes_that_differ_are_new_where_they_were_equal_and_not_the_other_way_round():
    equal, grouped = attention(4, 4), attention(4, 2)
    assert "query.1 unlike key.1" in Judged([equal]).news(grouped)
    assert Judged([grouped]).news(equal) == ""
    assert Judged([attention(4, 4, 7, 9), grouped]).news(attention(8, 2, 6, 5)) == ""


@pytest.mark.parametrize(
    "args, kwargs, news",
    [
        ((X, X), {}, ""),
        ((X.half(), X.half()), {}, "self float16 of 2, other float16 of 2"),
        ((X[0], X[0]), {}, "self float32 of 1, other float32 of 1"),
        ((X, X[:1]), {}, "other broadcast"),
        ((X.t(), X.t()), {}, "self not contiguous, other not contiguous"),
        ((X[:0], X[:0]), {}, "self empty, other empty"),
        ((X, 2), {}, "self float32 of 2"),
        ((torch.randn(5, 5), torch.randn(5, 5)), {}, ""),
    ],
)
def test_what_is_new(args, kwargs, news):
    judged = Judged([kind("aten::add.Tensor", X, X)])
    assert judged.news(kind("aten::add.Tensor", *args, **kwargs)).startswith(f"no case with {news}" if news else "")
    assert bool(judged.news(kind("aten::add.Tensor", *args, **kwargs))) == bool(news)


def test_arguments_that_are_no_tensors():
    told = Judged([kind("aten::sum.dim_IntList", X, [0], False)])
    assert told.news(kind("aten::sum.dim_IntList", X, [1], False)) == ""
    assert told.news(kind("aten::sum.dim_IntList", X, [0], True)) == "no case with keepdim=True"
    assert told.news(kind("aten::sum.dim_IntList", X, None)) == "no case with dim=None"
    assert "dtype=torch.float64" in told.news(kind("aten::sum.dim_IntList", X, [0], dtype=torch.float64))


def test_lists_of_tensors():
    judged = Judged([kind("aten::_foreach_add.List", [X, X], [X, X])])
    assert judged.news(kind("aten::_foreach_add.List", [X] * 5, [X] * 5)) == ""
    assert judged.news(kind("aten::_foreach_add.List", [X], [X[:1]])) == "no case with self unlike other"
    vectors = judged.news(kind("aten::_foreach_add.List", [X, X[0]], [X, X[0]]))
    assert vectors == "no case with self of 1, self of several shapes, other of 1 and 1 more"
