"""Calls for benchmarks/calls.py of what is bound by memory: reductions, scans, creation, copies and shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch

from benchmarks.maker import Arguments, Maker, Table

_MANY = 1 << 26


def _of(m: Maker, shape: tuple[int, ...], dim: Any) -> Any:
    return m(*shape), dim


def _all(m: Maker, tensors: int = 1) -> Any:
    return [m(1 << 24) for _ in range(tensors)]


def _reductions() -> Iterator[tuple[str, list[Arguments]]]:
    """Rows and columns of a matrix, few long rows, and everything."""
    lists = ("sum.dim_IntList", "mean.dim", "amax", "amin", "nansum", "logsumexp", "all.dims", "any.dims",
             "var.correction", "std.correction", "var_mean.correction", "std_mean.correction",
             "count_nonzero.dim_IntList", "hash_tensor")  # fmt: skip
    single = ("argmax", "argmin", "prod.dim_int", "max.dim", "min.dim", "all.dim", "any.dim")
    for name in (*lists, *single):
        rows, columns = ([1], [0]) if name in lists else (1, 0)
        kinds = [((4096, 4096), rows), ((4096, 4096), columns), ((16, 1 << 22), rows)]
        yield f"aten::{name}", [partial(_of, shape=shape, dim=dim) for shape, dim in kinds]
    for name in ("max", "min", "prod", "all", "any"):
        yield f"aten::{name}", [_all]
    yield "aten::equal", [partial(_all, tensors=2)]
    for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
        kinds = [((4096, 4096), 1), ((4096, 4096), 0), ((1, 1 << 24), 1)]
        yield f"aten::{name}", [partial(_of, shape=shape, dim=dim) for shape, dim in kinds]


def _same(m: Maker) -> Any:
    x = m(1 << 24)
    return x, x.clone()


def _items(m: Maker) -> torch.Tensor:
    """Where 4,096 items begin, of 128 rows or fewer, and the last ends."""
    lengths = torch.cat([torch.zeros(1, device=m.device).long(), m.below(128, 4096)])
    return lengths.cumsum(0)


def _jagged(m: Maker) -> Sequence[Any]:
    offsets = _items(m)
    return m(int(offsets[-1]), 64), [offsets], [128]


def _padded(m: Maker) -> Sequence[Any]:
    offsets = _items(m)
    return m(4096, 128, 64), [offsets], int(offsets[-1])


CALLS: Table = {
    "aten::_jagged_to_padded_dense_forward": [_jagged],
    "aten::_padded_dense_to_jagged_forward": [_padded],
    **dict(_reductions()),
    "aten::linalg_vector_norm": [lambda m: (m(1 << 24), 2), lambda m: (m(4096, 4096), 2, [1])],
    "aten::norm.ScalarOpt_dim": [lambda m: (m(4096, 4096), 2, [1]), lambda m: (m(4096, 4096), 2, [0])],
    "aten::renorm": [lambda m: (m(4096, 4096), 2, 0, 1.0)],
    "aten::aminmax": [
        lambda m: (m(1 << 24),),
        lambda m: (m(4096, 4096), {"dim": 1}),
        lambda m: (m(4096, 4096), {"dim": 0}),
    ],
    "aten::count_nonzero": [lambda m: (m(1 << 24),), lambda m: (m(4096, 4096), 1)],
    "aten::allclose": [_same],
    "aten::trace": [lambda m: (m(8192, 8192),)],
    "aten::copy_": [
        lambda m: (m(_MANY), m(_MANY)),
        lambda m: (m(_MANY), m.other(_MANY)),
        lambda m: (m(8192, 8192), m(8192, 8192).t()),
    ],
    "aten::_to_copy": [lambda m: (m(_MANY), {"dtype": m.other.of["dtype"]})],
    "aten::eye": [lambda m: (8192, m.of)],
    "aten::eye.m": [lambda m: (8192, 8192, m.of)],
    "aten::fill.Scalar": [lambda m: (m(_MANY), 0.5)],
    "aten::fill.Tensor": [lambda m: (m(_MANY), m())],
    "aten::full": [lambda m: ([_MANY], 0.5, m.of)],
    "aten::full_like": [lambda m: (m(_MANY), 0.5)],
    "aten::affine_grid_generator": [lambda m: (m(32, 2, 3), [32, 3, 512, 512], False)],
    "aten::linspace": [lambda m: (-1.0, 1.0, _MANY, m.of)],
    "aten::linspace.Tensor_Tensor": [lambda m: (m.number(-1), m.number(1), _MANY, m.of)],
    "aten::linspace.Tensor_Scalar": [lambda m: (m.number(-1), 1.0, _MANY, m.of)],
    "aten::linspace.Scalar_Tensor": [lambda m: (-1.0, m.number(1), _MANY, m.of)],
    "aten::logspace": [lambda m: (-4.0, 0.0, _MANY, 10.0, m.of)],
    "aten::logspace.Tensor_Tensor": [lambda m: (m.number(-4), m.number(0), _MANY, 10.0, m.of)],
    "aten::logspace.Tensor_Scalar": [lambda m: (m.number(-4), 0.0, _MANY, 10.0, m.of)],
    "aten::logspace.Scalar_Tensor": [lambda m: (-4.0, m.number(0), _MANY, 10.0, m.of)],
    "aten::new_full": [lambda m: (m(1), [_MANY], 0.5)],
    "aten::new_ones": [lambda m: (m(1), [_MANY])],
    "aten::new_zeros": [lambda m: (m(1), [_MANY])],
    "aten::ones": [lambda m: ([_MANY], m.of)],
    "aten::scalar_tensor": [lambda m: (0.5, m.of)],
    "aten::zero": [lambda m: (m(_MANY),)],
    "aten::zeros": [lambda m: ([_MANY], m.of)],
    "aten::bernoulli": [lambda m: (m.unit(_MANY),)],
    "aten::bernoulli.p": [lambda m: (m(_MANY), 0.1)],
    "aten::bernoulli.Tensor": [lambda m: (m(_MANY), m.unit(_MANY))],
    "aten::normal.Tensor_Tensor": [lambda m: (m(_MANY), m.unit(_MANY))],
    "aten::normal.Tensor_float": [lambda m: (m(_MANY), 0.02)],
    "aten::normal.float_Tensor": [lambda m: (0.0, m.unit(_MANY))],
    "aten::normal.float_float": [lambda m: (0.0, 0.02, [_MANY], m.of)],
    "aten::normal_functional": [lambda m: (m(_MANY), 0.0, 0.02)],
    "aten::rand": [lambda m: ([_MANY], m.of)],
    "aten::rand.generator": [lambda m: ([_MANY], {"generator": None, **m.of})],
    "aten::rand_like": [lambda m: (m(_MANY),)],
    "aten::rand_like.generator": [lambda m: (m(_MANY), {"generator": None})],
    "aten::randn": [lambda m: ([_MANY], m.of)],
    "aten::randn.generator": [lambda m: ([_MANY], {"generator": None, **m.of})],
    "aten::randn_like": [lambda m: (m(_MANY),)],
    "aten::randn_like.generator": [lambda m: (m(_MANY), {"generator": None})],
    "aten::uniform": [lambda m: (m(_MANY), -1.0, 1.0)],
    "aten::exponential": [lambda m: (m(_MANY), 1.0)],
    "aten::log_normal": [lambda m: (m(_MANY), 0.0, 0.25)],
    "aten::cauchy": [lambda m: (m(_MANY), 0.0, 1.0)],
    "aten::geometric": [lambda m: (m(_MANY), 0.1)],
    "aten::random": [lambda m: (m(_MANY),)],
    "aten::random.to": [lambda m: (m(_MANY), 100)],
    "aten::random.from": [lambda m: (m(_MANY), -100, 100)],
    "aten::randint": [lambda m: (100, [_MANY], m.of)],
    "aten::randint.generator": [lambda m: (100, [_MANY], {"generator": None, **m.of})],
    "aten::randint.low": [lambda m: (-100, 100, [_MANY], m.of)],
    "aten::randint.low_generator": [lambda m: (-100, 100, [_MANY], {"generator": None, **m.of})],
    "aten::randint_like": [lambda m: (m(_MANY), 100)],
    "aten::randint_like.generator": [lambda m: (m(_MANY), 100, {"generator": None})],
    "aten::randint_like.low_dtype": [lambda m: (m(_MANY), -100, 100)],
    "aten::randint_like.low_generator_dtype": [lambda m: (m(_MANY), -100, 100, {"generator": None})],
    "aten::randperm": [lambda m: (1 << 24, {"device": m.device})],
    "aten::randperm.generator": [lambda m: (1 << 20, {"generator": None, "device": m.device})],
    "aten::poisson": [lambda m: (m.unit(_MANY),), lambda m: (m.unit(1 << 24) * 100,)],
    "aten::multinomial": [
        lambda m: (m.unit(64, 50304), 1),  # the next token of a batch
        lambda m: (m.unit(1 << 20), 1 << 20, True),
        lambda m: (m.unit(64, 4096), 512),
    ],
    "aten::rrelu_with_noise": [lambda m: (m(_MANY), m(_MANY), 0.125, 0.25, True)],
    "aten::rrelu_with_noise_": [lambda m: (m(_MANY), m(_MANY), 0.125, 0.25, True)],
    "aten::rrelu_with_noise_functional": [lambda m: (m(_MANY), m(_MANY), 0.125, 0.25, True)],
    "aten::alias_copy": [lambda m: (m(_MANY),)],
    "aten::as_strided_scatter": [lambda m: (m(8192, 8192), m(8192, 4096), [8192, 4096], [8192, 1])],
    "aten::as_strided_copy": [lambda m: (m(8192, 8192), [8192, 8192], [1, 8192])],
    "aten::expand_copy": [
        lambda m: (m(1, 8192), [8192, 8192]),
        lambda m: (m(8, 8, 1, 1024, 128), [8, 8, 4, 1024, 128]),  # keys of grouped queries
    ],
    "aten::narrow_copy": [lambda m: (m(8192, 8192), 1, 1024, 4096)],
    "aten::permute_copy": [lambda m: (m(32, 1024, 16, 64), [0, 2, 1, 3])],
    "aten::squeeze_copy": [lambda m: (m(8192, 1, 4096),)],
    "aten::squeeze_copy.dim": [lambda m: (m(8192, 1, 4096), 1)],
    "aten::squeeze_copy.dims": [lambda m: (m(8192, 1, 4096), [1])],
    "aten::unsqueeze_copy": [lambda m: (m(8192, 4096), 1)],
    "aten::split_with_sizes_copy": [lambda m: (m(8192, 3072), [1024] * 3, 1)],
    "aten::t_copy": [lambda m: (m(8192, 8192),)],
    "aten::transpose_copy.int": [lambda m: (m(64, 1024, 1024), 1, 2)],
    "aten::unbind_copy.int": [lambda m: (m(3, 8192, 1024),)],
    "aten::unfold_copy": [lambda m: (m(4096, 4096), 1, 8, 4)],
    "aten::view_copy": [lambda m: (m(_MANY), [8192, 8192])],
    "aten::flip": [lambda m: (m(4096, 4096), [1])],
    "aten::roll": [lambda m: (m(4096, 4096), [3], [1])],
    "aten::rot90": [lambda m: (m(4096, 4096),)],
    "aten::repeat": [lambda m: (m(1024, 1024), [4, 4])],
    "aten::triu": [lambda m: (m(4096, 4096),)],
    "aten::tril": [lambda m: (m(4096, 4096),)],
    "aten::cat": [lambda m: ([m(4096, 1024), m(4096, 2048), m(4096, 1024)], 1)],
    "aten::stack": [lambda m: ([m(1024, 1024)] * 4, 1)],
    "aten::block_diag": [lambda m: ([m(1024, 1024) for _ in range(8)],)],
    "aten::diag_embed": [lambda m: (m(64, 512),)],
    "aten::diagonal_backward": [lambda m: (m(64, 512), [64, 512, 512], 0, 1, 2)],
    "aten::diagonal_copy": [lambda m: (m(64, 512, 512), 0, 1, 2)],
    "aten::diagonal_scatter": [lambda m: (m(64, 512, 512), m(64, 512), 0, 1, 2)],
    "aten::select_backward": [lambda m: (m(64, 4096), [64, 197, 4096], 1, 0)],
    "aten::select_scatter": [lambda m: (m(64, 197, 4096), m(64, 4096), 1, 0)],
    "aten::slice_backward": [lambda m: (m(4096, 2048), [4096, 4096], 1, 0, 2048, 1)],
    "aten::slice_scatter": [lambda m: (m(4096, 4096), m(4096, 2048), 1, 0, 2048, 1)],
}
SINGLE: Table = {
    "aten::_is_all_true": [lambda m: (m.mask(_MANY),)],
    "aten::_is_any_true": [lambda m: (m.mask(_MANY),)],
    "aten::complex": [lambda m: (m(_MANY), m(_MANY))],
    "aten::polar": [lambda m: (m.unit(_MANY), m(_MANY))],
    "aten::tril_indices": [lambda m: (4096, 4096, 0, {"device": m.device})],
    "aten::triu_indices": [lambda m: (4096, 4096, 0, {"device": m.device})],
}
