"""Calls for benchmarks/calls.py of operators that choose, place, sort or count.

Rows of 256 as embeddings have them, half of 2^16 at once; the vocabulary of the smallest GPT-2; 26 tables of features
of a recommendation model as one, 32 indices a bag.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch

from benchmarks.maker import Arguments, Maker, Table

_ROWS, _CHOSEN = 1 << 16, 1 << 15
_FEATURES, _BAGS, _IN_BAG = 100_000, 2048, 32


def _placed(m: Maker) -> tuple[torch.Tensor, ...]:
    """Rows, where others go among them, and these."""
    return m(_ROWS, 256), m.below(_ROWS, _CHOSEN), m(_CHOSEN, 256)


def _put(m: Maker, *more: Any) -> Any:
    rows, index, values = _placed(m)
    return rows, [index], values, *more


def _masked(m: Maker) -> tuple[Any, ...]:
    rows, index, _ = _placed(m)
    return rows, m.mask(_CHOSEN, 256), [index]


def _along(m: Maker, *more: Any) -> Any:
    return m(4096, 4096), 1, m.below(4096, 4096, 4096), *more


def _reduced_along(m: Maker, reduce: str) -> Any:
    return _along(m, m(4096, 4096), reduce)


def _scattered(m: Maker, reduce: str, number: bool) -> Any:
    return _along(m, 0.5 if number else m(4096, 4096), {"reduce": reduce})


def _reduced_rows(m: Maker, reduce: str) -> Any:
    rows, index, values = _placed(m)
    return rows, 0, index, values, reduce


def _reducing() -> Iterator[tuple[str, list[Arguments]]]:
    yield "aten::scatter.reduce", [partial(_scattered, reduce=r, number=False) for r in ("add", "multiply")]
    yield "aten::scatter.value_reduce", [partial(_scattered, reduce=r, number=True) for r in ("add", "multiply")]
    reduces = ("prod", "mean", "amax", "amin")
    yield "aten::scatter_reduce.two", [partial(_reduced_along, reduce=r) for r in ("sum", *reduces)]
    yield "aten::index_reduce", [partial(_reduced_rows, reduce=r) for r in reduces]


def _bags(m: Maker) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices, and where bags begin."""
    return m.below(_FEATURES, _BAGS * _IN_BAG), torch.arange(0, _BAGS * _IN_BAG, _IN_BAG, device=m.device)


def _bag(m: Maker, mode: int) -> Any:
    return m(_FEATURES, 64), *_bags(m), False, mode


def _found(m: Maker) -> tuple[torch.Tensor, ...]:
    """What the forward leaves: the bag of each index, indices of each bag, and nothing where no maximum is taken."""
    of_each = torch.arange(_BAGS * _IN_BAG, device=m.device) // _IN_BAG
    return of_each, torch.full((_BAGS,), _IN_BAG, device=m.device), m.below(1, 0)


def _bag_gradients(m: Maker, mode: int) -> Any:
    return m(_BAGS, 64), *_bags(m), *_found(m), _FEATURES, False, mode, False, None


def _dense_bag_gradients(m: Maker, mode: int) -> Any:
    indices, _ = _bags(m)
    return m(_BAGS, 64), indices, *_found(m), _FEATURES, False, mode, None


def _sparse(m: Maker) -> torch.Tensor:
    """The gradient of an embedding, with each token where it was."""
    indices, values = m.below(50304, 1, 1 << 14), m(1 << 14, 768)
    return torch.sparse_coo_tensor(indices, values, (50304, 768), check_invariants=False)


def _median() -> Iterator[tuple[str, list[Arguments]]]:
    for name in ("median", "nanmedian"):
        yield f"aten::{name}", [lambda m: (m(1 << 24),)]
        yield f"aten::{name}.dim", [lambda m: (m(4096, 4096), 1)]


def _sorted_classes(m: Maker) -> Sequence[Any]:
    return m.below(1 << 16, 1 << 24).sort().values, True, True


def _segments(m: Maker) -> torch.Tensor:
    """Offsets of 4096 segments of 16 rows each."""
    return torch.arange(0, (1 << 16) + 1, 16, device=m.device)


def _segment_gradients(m: Maker) -> Any:
    data, told = m(1 << 16, 256), {"offsets": _segments(m)}
    return m(1 << 12, 256), torch.segment_reduce(data, "max", **told), data, "max", told


CALLS: Table = {
    **dict(_reducing()),
    **dict(_median()),
    "aten::gather": [_along],
    "aten::scatter.src": [lambda m: _along(m, m(4096, 4096))],
    "aten::scatter.value": [lambda m: _along(m, 0.5)],
    "aten::scatter_add": [lambda m: _along(m, m(4096, 4096))],
    "aten::index_select": [lambda m: (m(_ROWS, 256), 0, m.below(_ROWS, _CHOSEN))],
    "aten::index_add": [lambda m: (m(_ROWS, 256), 0, *_placed(m)[1:])],
    "aten::index_copy": [lambda m: (m(_ROWS, 256), 0, torch.arange(_CHOSEN, device=m.device), m(_CHOSEN, 256))],
    "aten::index_fill.int_Scalar": [lambda m: (m(_ROWS, 256), 0, m.below(_ROWS, _CHOSEN), 0.5)],
    "aten::index_fill.int_Tensor": [lambda m: (m(_ROWS, 256), 0, m.below(_ROWS, _CHOSEN), m())],
    "aten::index.Tensor": [lambda m: (m(_ROWS, 256), [m.below(_ROWS, _CHOSEN)])],
    "aten::_unsafe_index.Tensor": [lambda m: (m(_ROWS, 256), [m.below(_ROWS, _CHOSEN)])],
    "aten::_unsafe_masked_index": [lambda m: (*_masked(m), 0.0)],
    "aten::_unsafe_masked_index_put_accumulate": [lambda m: (*_masked(m), m(_CHOSEN, 256))],
    "aten::index_put": [_put, lambda m: _put(m, True)],
    "aten::_index_put_impl": [_put, lambda m: _put(m, True)],
    "aten::put": [
        lambda m: (m(4096, 4096), m.below(1 << 24, 1 << 22), m(1 << 22)),
        lambda m: (m(4096, 4096), m.below(1 << 24, 1 << 22), m(1 << 22), True),
    ],
    "aten::take": [lambda m: (m(4096, 4096), m.below(1 << 24, 1 << 22))],
    "aten::embedding": [lambda m: (m(50304, 768), m.below(50304, 32, 512))],
    "aten::embedding_dense_backward": [lambda m: (m(32, 512, 768), m.below(50304, 32, 512), 50304, -1, False)],
    "aten::_embedding_bag": [lambda m: _bag(m, 0), lambda m: _bag(m, 1)],
    "aten::_embedding_bag_forward_only": [lambda m: _bag(m, 0), lambda m: _bag(m, 1)],
    "aten::_embedding_bag_backward": [lambda m: _bag_gradients(m, 0), lambda m: _bag_gradients(m, 1)],
    "aten::_embedding_bag_dense_backward": [
        lambda m: _dense_bag_gradients(m, 0),
        lambda m: _dense_bag_gradients(m, 1),
    ],
    "aten::_embedding_bag_per_sample_weights_backward": [
        lambda m: (m(_BAGS, 64), m(_FEATURES, 64), *_bags(m), _found(m)[0], 0)
    ],
    "aten::_coalesce": [lambda m: (_sparse(m),)],
    "aten::_to_dense": [lambda m: (_sparse(m).coalesce(),)],
    "aten::_to_sparse": [lambda m: (m(4096, 4096) * m.mask(4096, 4096),)],
    "aten::_to_sparse.sparse_dim": [lambda m: (m(50304, 768) * m.mask(50304, 1), 1)],
    "aten::segment_reduce": [lambda m: (m(1 << 16, 256), "sum", {"offsets": _segments(m)})],
    "aten::_segment_reduce_backward": [lambda m: _segment_gradients(m)],
    "aten::sparse_mask": [lambda m: (m(50304, 768), _sparse(m).coalesce())],
    "aten::masked_fill.Scalar": [lambda m: (m(64, 512, 512), m.mask(512, 512), float("-inf"))],
    "aten::masked_fill.Tensor": [lambda m: (m(64, 512, 512), m.mask(512, 512), m())],
    "aten::masked_select": [lambda m: (m(1 << 22), m.mask(1 << 22))],
    "aten::masked_scatter": [lambda m: (m(1 << 24), m.mask(1 << 24), m(1 << 24))],
    "aten::masked_scatter_backward": [lambda m: (m(1 << 24), m.mask(1 << 24), [1 << 24])],
    "aten::nonzero": [lambda m: (m.mask(1 << 22),)],
    "aten::unfold_backward": [lambda m: (m(4096, 1023, 8), [4096, 4096], 1, 8, 4)],
    "aten::searchsorted.Tensor": [lambda m: (m(1 << 16).sort().values, m(1 << 20))],
    "aten::searchsorted.Scalar": [lambda m: (m(1 << 24).sort().values, 0.5)],
    "aten::bucketize.Tensor": [lambda m: (m(1 << 20), m(256).sort().values)],
    "aten::sort": [lambda m: (m(1 << 24),), lambda m: (m(4096, 4096), 1)],
    "aten::sort.stable": [
        lambda m: (m(1 << 24), {"stable": True}),
        lambda m: (m(4096, 4096), {"stable": True, "dim": 1}),
    ],
    "aten::topk": [lambda m: (m(4096, 4096), 64), lambda m: (m(64, 1 << 18), 64)],
    "aten::kthvalue": [lambda m: (m(4096, 4096), 64, 1), lambda m: (m(1 << 24), 1 << 23, 0)],
}
SINGLE: Table = {
    "aten::nonzero_static": [lambda m: (m.mask(1 << 24), {"size": 1 << 23})],
    "aten::repeat_interleave.Tensor": [lambda m: (m.below(8, 1 << 22),)],
    "aten::isin.Tensor_Tensor": [
        lambda m: (m.below(1 << 20, 1 << 24), m.below(1 << 20, 1 << 16)),
        lambda m: (m.below(1 << 20, 1 << 24), m.below(1 << 20, 8)),
    ],
    "aten::mode": [lambda m: (m.below(1000, 1 << 16, 64),), lambda m: (m(4096, 2048), 1)],
    "aten::_unique": [lambda m: (m.below(1 << 16, 1 << 24), True, True)],
    "aten::_unique2": [lambda m: (m.below(1 << 16, 1 << 24), True, True, True)],
    "aten::unique_consecutive": [_sorted_classes],
    "aten::unique_dim": [lambda m: (m.below(1000, 1 << 18, 2), 0, True, True, True)],
    "aten::bincount": [lambda m: (m.below(1000, 1 << 24),), lambda m: (m.below(1000, 1 << 24), m(1 << 24))],
    "aten::histc": [lambda m: (m(1 << 24), 100, -3, 3)],
}
