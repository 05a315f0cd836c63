"""Cases of operators that no OpInfo operator calls and that take another operator's results.

Attention gradients take the forward result and its logsumexp. Bag gradients take the bag that contains each
index, weight-norm gradients take the norms, a loss-scale update takes its step counter, and jagged conversions
take row offsets. The schemas do not state these links, nor which sizes fit. The functions here call ATen once
for the forward answer, or the reference if the CPU lacks the operator, and pass that answer on as arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from traces.overloads import bind, resolve
from verify.cases import references
from verify.cases.case import Case, case_of_values
from verify.cases.oracle import stands

Arguments = dict[str, Any]
_SHAPES = ((1, 2, 5, 7, 8), (2, 3, 21, 39, 16), (1, 1, 40, 40, 32))  # batch, heads, queries, keys, head width
_INDICES, _OFFSETS = (0, 3, 3, 5, 1, 0, 8, 2), (0, 2, 2, 5)  # one bag is empty
_ROWS, _WIDTH = 9, 5  # rows and columns in the embedding table
_PHILOX = (1, 2)


def linked_cases(overload: str, dtypes: Sequence[torch.dtype]) -> list[Case]:
    """Return the linked calls for one overload, in each dtype that ATen answers; empty for any other overload."""
    made = itertools.chain.from_iterable(_MADE[overload](dtype) for dtype in dtypes) if overload in _MADE else ()
    calls = (bind(resolve(overload), (), arguments) for arguments in made)
    cases = (case_of_values(overload, **a) for a in calls if references.has(overload) or stands(overload, a))
    return list({case.id: case for case in cases}.values())


def _attention(
    forward: str,
    left: dict[str, int],
    dropout: tuple[float, ...],
    more: Callable[[int, int], Arguments] = lambda queries, keys: {},
    grad: str = "grad_out",
) -> Callable[[torch.dtype], Iterator[Arguments]]:
    """Return a generator function for the calls to an attention gradient.

    Args:
        forward: The forward overload.
        left: Maps gradient arguments to their index among the forward results.
        dropout: Dropout probabilities, used in turn.
        more: Returns additional gradient arguments for a number of queries and keys.
        grad: Name that the gradient overload gives to the output gradient.
    """

    def made(dtype: torch.dtype) -> Iterator[Arguments]:
        if not dtype.is_floating_point:
            return
        for number, (shape, causal) in enumerate(itertools.product(_SHAPES, (False, True))):
            batch, heads, queries, keys, width = shape
            draw = _Draw(number, dtype)
            inputs = {
                "query": draw(batch, heads, queries, width),
                "key": draw(batch, heads, keys, width),
                "value": draw(batch, heads, keys, width),
                "dropout_p": dropout[number % len(dropout)],
                "is_causal": causal,
            }
            named = {a.name for a in resolve(forward)._schema.arguments}
            asked = {"compute_log_sumexp": True, "compute_logsumexp": True, "attn_bias": None}
            answer = _answer(forward, {**inputs, **{n: v for n, v in asked.items() if n in named}})
            if answer is not None:
                forward_results = {name: answer[index] for name, index in left.items()}
                yield {**inputs, **forward_results, grad: draw(*answer[0].shape), **more(queries, keys)}

    return made


class _Draw:
    """Source of reproducible normal numbers in one dtype."""

    def __init__(self, seed: int, dtype: torch.dtype) -> None:
        self._generator, self._dtype = torch.Generator().manual_seed(seed), dtype

    def __call__(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self._generator, dtype=torch.float64).to(self._dtype)


def _answer(overload: str, arguments: Arguments) -> Any:
    """Return ATen's answer, or the reference's, or None if the call is refused."""
    call = bind(resolve(overload), (), arguments)
    if references.has(overload):
        return references.answer(overload, call, _PHILOX)
    return resolve(overload)(**call) if stands(overload, call) else None


def _bags(dtype: torch.dtype) -> Iterator[tuple[_Draw, Arguments, Arguments]]:
    """Yield a number source, embedding tables with their bags, and the mapping from indices to bags.

    The modes are sums, means and maxima.
    """
    indices, offsets = torch.tensor(_INDICES), torch.tensor(_OFFSETS)
    bounds = torch.tensor([*_OFFSETS, len(_INDICES)])
    sizes = bounds.diff()
    for mode, weighted, padding in ((0, False, -1), (0, True, -1), (1, False, 3), (2, False, -1), (0, False, 3)):
        if not dtype.is_floating_point:
            return
        draw = _Draw(mode, dtype)
        weights = draw(len(_INDICES)) if weighted else None
        options = {"indices": indices, "mode": mode, "per_sample_weights": weights, "padding_idx": padding}
        places = {"offset2bag": torch.repeat_interleave(sizes), "bag_size": sizes}
        yield draw, {"weight": draw(_ROWS, _WIDTH), "offsets": offsets, **options}, places


def _forward_only(dtype: torch.dtype) -> Iterator[Arguments]:
    for _, arguments, _ in _bags(dtype):
        yield arguments
        ended = torch.tensor([*_OFFSETS, len(_INDICES)])
        yield {**arguments, "offsets": ended, "include_last_offset": True}


def _dense_backward(dtype: torch.dtype) -> Iterator[Arguments]:
    for (draw, arguments, places), scaled in itertools.product(_bags(dtype), (False, True)):
        if arguments["mode"] != 2:  # for maxima, the forward call reports their positions
            named = {n: v for n, v in arguments.items() if n not in ("weight", "offsets")}
            counts = {"num_weights": _ROWS, "scale_grad_by_freq": scaled, "maximum_indices": torch.empty(0).long()}
            yield {"grad": draw(len(_OFFSETS), _WIDTH), **named, **places, **counts}


def _weights_backward(dtype: torch.dtype) -> Iterator[Arguments]:
    for draw, arguments, places in _bags(dtype):
        if arguments["mode"] == 0:
            named = {n: v for n, v in arguments.items() if n != "per_sample_weights"}
            yield {"grad": draw(len(_OFFSETS), _WIDTH), **named, "offset2bag": places["offset2bag"]}


def _update_scale(dtype: torch.dtype) -> Iterator[Arguments]:
    """Yield step counters below, at and above the growth interval, with and without an overflow."""
    for scale, steps, overflow in itertools.product((1024.0, 3.0), (0, 3, 4, 5), (0.0, 1.0)):
        yield {
            "self": torch.tensor(scale),
            "growth_tracker": torch.tensor(steps, dtype=torch.int32),
            "found_inf": torch.tensor(overflow),
            "scale_growth_factor": 2.0,
            "scale_backoff_factor": 0.5,
            "growth_interval": 5,
        }


def _entries(dtype: torch.dtype) -> Iterator[Arguments]:
    """Yield sparse tensors with duplicate entries, in one or two sparse dimensions, and one without entries."""
    for number, (size, count) in enumerate((((9, 3), 20), ((4, 4, 2), 30), ((9,), 40), ((9, 3), 0))):
        sparse = min(len(size), 2) if len(size) != 2 else 1
        generator = torch.Generator().manual_seed(number)
        places = [torch.randint(n, (count,), generator=generator) for n in size[:sparse]]
        values = (_Draw(number, torch.float64)(count, *size[sparse:]) * 4).to(dtype)
        with torch.sparse.check_sparse_tensor_invariants(False):  # type: ignore[no-untyped-call]
            yield {"self": torch.sparse_coo_tensor(torch.stack(places), values, size)._coalesced_(False)}


def _weight_norms(dtype: torch.dtype) -> Iterator[Arguments]:
    """Yield weights normalized over the first and the last dimension, with the norms from the forward call."""
    if not dtype.is_floating_point:
        return
    for number, (shape, last) in enumerate(itertools.product(((7,), (6, 5), (5, 3, 70), (40, 300)), (False, True))):
        draw, dim = _Draw(number, dtype), len(shape) - 1 if last else 0
        inputs = {"v": draw(*shape), "g": draw(*[n if d == dim else 1 for d, n in enumerate(shape)]), "dim": dim}
        answer = _answer("aten::_weight_norm_interface", inputs)
        if answer is not None:
            saved = {"saved_v": inputs["v"], "saved_g": inputs["g"], "saved_norms": answer[1]}
            yield {"grad_w": draw(*shape), **saved, "dim": dim}


def _of_bytes(dtype: torch.dtype) -> Iterator[Arguments]:
    """Yield int8 matrices. ATen accepts sizes in multiples of 8."""
    if dtype is torch.int8:
        for number, (m, k, n) in enumerate(((17, 8, 8), (24, 40, 16), (33, 264, 72), (3, 600, 8))):
            draw = _Draw(number, torch.float64)
            yield {"self": (draw(m, k) * 40).char(), "mat2": (draw(k, n) * 40).char()}


def _weights_of_bytes(dtype: torch.dtype) -> Iterator[Arguments]:
    """Yield int8 weights whose sizes are multiples of 16; other sizes may crash the process in ATen."""
    for number, (m, k, n) in enumerate(((1, 16, 16), (5, 48, 32), (33, 512, 80))):
        draw = _Draw(number, dtype)
        yield {"self": draw(m, k), "mat2": (draw(n, k) * 40).char(), "scales": draw(n).abs()}


def _padded(dtype: torch.dtype) -> Iterator[Arguments]:
    for number, (offsets, length) in enumerate((((0, 2, 2, 7), 5), ((0, 4), 9), ((0, 30, 31, 90), 60), ((0, 3, 9), 4))):
        for inner in ((), (3,), (2, 5)):
            values = (_Draw(number, torch.float64)(offsets[-1], *inner) * 4).to(dtype)
            how = {"max_lengths": [length], "padding_value": -1.0 if dtype.is_signed else 1.0}
            yield {"values": values, "offsets": [torch.tensor(offsets)], **how}


def _unpadded(dtype: torch.dtype) -> Iterator[Arguments]:
    for number, (offsets, length) in enumerate((((0, 2, 2, 7), 5), ((0, 4), 9), ((0, 30, 31, 90), 60))):
        for inner, total in itertools.product(((), (3,), (2, 5)), (None, offsets[-1])):
            dense = (_Draw(number, torch.float64)(len(offsets) - 1, length, *inner) * 4).to(dtype)
            yield {"dense": dense, "offsets": [torch.tensor(offsets)], "total_L": total}


def _resized(dtype: torch.dtype, backward: bool) -> Iterator[Arguments]:
    """Yield resize calls that shrink, enlarge or keep images, with and without aligned corners and explicit scales."""
    sizes = (((7, 9), (15, 20)), ((27, 19), (3, 5)), ((6, 30), (6, 4)), ((40, 33), (21, 66)))
    for number, ((old, new), align, scaled) in enumerate(itertools.product(sizes, (False, True), (False, True))):
        draw = _Draw(number, dtype)
        scales = [m / n if scaled else None for n, m in zip(old, new, strict=True)]
        how = {"align_corners": align, "scales_h": scales[0], "scales_w": scales[1], "output_size": list(new)}
        if backward:
            yield {"grad_output": draw(2, 3, *new), "input_size": [2, 3, *old], **how}
        else:
            yield {"self": draw(2, 3, *old), **how}


def _affine(dtype: torch.dtype) -> Iterator[Arguments]:
    for number, (space, align) in enumerate(itertools.product(((4, 5), (33, 1), (3, 4, 6)), (False, True))):
        theta = _Draw(number, dtype)(2, len(space), len(space) + 1)
        yield {"theta": theta, "size": [2, 3, *space], "align_corners": align}


def _lengths(queries: int, keys: int) -> Arguments:
    return {"cum_seq_q": None, "cum_seq_k": None, "max_q": queries, "max_k": keys}


_ATTENTION = "aten::_scaled_dot_product_"
_SEEDS = {"out": 0, "logsumexp": 1, "philox_seed": 6, "philox_offset": 7}
_MADE: dict[str, Callable[[torch.dtype], Iterator[Arguments]]] = {
    f"{_ATTENTION}flash_attention_for_cpu_backward": _attention(
        f"{_ATTENTION}flash_attention_for_cpu", {"out": 0, "logsumexp": 1}, (0.0,)
    ),
    f"{_ATTENTION}flash_attention_backward": _attention(f"{_ATTENTION}flash_attention", _SEEDS, (0.0, 0.2), _lengths),
    f"{_ATTENTION}cudnn_attention_backward": _attention(
        f"{_ATTENTION}cudnn_attention", _SEEDS, (0.0, 0.2), lambda q, k: {"attn_bias": None, **_lengths(q, k)}
    ),
    f"{_ATTENTION}efficient_attention_backward": _attention(
        f"{_ATTENTION}efficient_attention",
        {"out": 0, "logsumexp": 1, "philox_seed": 2, "philox_offset": 3},
        (0.0, 0.2),
        lambda q, k: {"attn_bias": None, "grad_input_mask": [True, True, True, False]},
        grad="grad_out_",
    ),
    "aten::_embedding_bag_forward_only": _forward_only,
    "aten::_embedding_bag_dense_backward": _dense_backward,
    "aten::_embedding_bag_per_sample_weights_backward": _weights_backward,
    "aten::_amp_update_scale_": _update_scale,
    "aten::_weight_norm_interface_backward": _weight_norms,
    "aten::_coalesce": _entries,
    "aten::_to_dense": _entries,
    "aten::_upsample_bicubic2d_aa": partial(_resized, backward=False),
    "aten::_upsample_bicubic2d_aa_backward": partial(_resized, backward=True),
    "aten::affine_grid_generator": _affine,
    "aten::_int_mm": _of_bytes,
    "aten::_weight_int8pack_mm": _weights_of_bytes,
    "aten::_jagged_to_padded_dense_forward": _padded,
    "aten::_padded_dense_to_jagged_forward": _unpadded,
}
