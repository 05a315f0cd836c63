"""Attention at its edges: what calls there are, what is expected of them, and how far off an answer may be."""

import math

import pytest
import torch

from traces.values import pack, unpack
from verify.cases.case import case_of_values, reference
from verify.cases.oracle import stands
from verify.comparison.compare import compare

EFFICIENT, FLASH = "aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_flash_attention"


def drawn(*shape, dtype=torch.float16):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def forward(q, k, v, **more):
    how = {"dropout_p": 0.0, "is_causal": False, "scale": None}
    return {"query": q, "key": k, "value": v, **how, **more}


@pytest.mark.parametrize(
    ("overload", "changed"),
    [
        (EFFICIENT, {"value": torch.ones(1, 2, 3, 4, dtype=torch.bool)}),
        (EFFICIENT, {"value": drawn(1, 2, 3, 4, dtype=torch.float32)}),
        (EFFICIENT, {name: drawn(1, 1, 2, 3, 4) for name in ("query", "key", "value")}),
        (FLASH, {"value": drawn(1, 2, 3, 5)}),
        (FLASH, {"key": torch.full((1, 2, 3, 4), -math.inf, dtype=torch.float16)}),
    ],
    ids=["bool", "two dtypes", "five dimensions", "another number of features", "infinite scores"],
)
def test_calls_that_no_gpu_takes_are_left_out(overload, changed):
    x = drawn(1, 2, 3, 4)
    more = {"attn_bias": None, "compute_log_sumexp": True} if overload == EFFICIENT else {"return_debug_mask": False}
    assert stands(overload, forward(x, x, x, **more))
    assert not stands(overload, {**forward(x, x, x, **more), **changed})


def test_a_score_of_infinity_leaves_no_logsumexp():
    """All kernels take the difference to the largest score, which is none then."""
    x, bias = drawn(1, 1, 3, 4), torch.zeros(1, 1, 3, 3, dtype=torch.float16)
    bias[0, 0, 0, 1], bias[0, 0, 1] = math.inf, -math.inf
    call = forward(x, x, x, attn_bias=bias, compute_log_sumexp=True)
    lse = unpack(reference(case_of_values(EFFICIENT, **call)).values)["return"][1][0, 0]
    assert lse[0].isnan() and lse[1] == math.inf and lse[2].isfinite()


@pytest.mark.parametrize(("error", "right"), [(2.0**-24, True), (2.0**-14, False)])
def test_gradients_that_cancel_are_right_within_roundings_of_their_terms(error, right):
    """With one key its probability is 1 whatever the query says, so that the query's gradient is 0."""
    q, k, v, grad = (drawn(2, 3, n, 16) for n in (21, 1, 1, 21))
    out, scores = v.expand(2, 3, 21, 16).contiguous(), (q.float() @ k.float().transpose(2, 3)).squeeze(3) / 4
    lse = torch.nn.functional.pad(scores, (0, 11), value=math.inf)
    state = {"philox_seed": torch.tensor(0), "philox_offset": torch.tensor(0)}
    call = {"grad_out_": grad, **forward(q, k, v), "attn_bias": None, "out": out, "logsumexp": lse, **state}
    call |= {"grad_input_mask": [True, True, True, False]}
    terms = (grad.float().abs() @ v.float().abs().transpose(2, 3)) * k.float().abs() / 4
    expected = reference(case_of_values(f"{EFFICIENT}_backward", **call))
    _, of_key, of_value, of_bias = unpack(expected.values)["return"]
    answer = (terms * error).half(), of_key.half(), of_value.half(), of_bias
    answer = tuple(t if t is None else t.transpose(1, 2).contiguous().transpose(1, 2) for t in answer)
    packed = pack({**call, "return": answer})
    packed.data = [None if d is None else bytes(d) for d in packed.data]
    assert (compare(f"{EFFICIENT}_backward", expected, packed, strict=False) is None) == right
