"""Kernels on tensors of more than 2^31 elements, beside PyTorch's own on the same device.

On a GPU: pytest -m gpu tests/enable/test_large_tensors.py
"""

import math

import pytest
import torch

from capture.device import compiles
from enable import library

MEMORY = 60 << 30  # bytes that the largest of these take
LARGE = (1 << 31) + 77
ROWS, COLUMNS = (1 << 16) + 3, 1 << 15  # together more than 2^31
SHARE = 1 << 26  # elements that are compared at a time

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or torch.cuda.get_device_properties(0).total_memory < MEMORY,
        reason="needs a CUDA device with 60 GiB",
    ),
    pytest.mark.skipif(not compiles(), reason="needs kernels compiled: pytest -m gpu, without TRITON_INTERPRET"),
]
A = torch.ops.aten


def flat(dtype=torch.bfloat16, n=LARGE):
    """Numbers that repeat after a prime number of elements, so that a wrapped offset shows."""
    some = torch.randn(999_983, device="cuda").to(dtype)
    return some.repeat(math.ceil(n / len(some)))[:n]


def rows(dtype=torch.bfloat16):
    return flat(dtype, ROWS * COLUMNS).view(ROWS, COLUMNS)


def narrow():
    """A product along whose sum the elements of one operand are 2^25 apart."""
    return flat().as_strided((40, 64), (1, 1 << 25)), flat(n=64 * 16).view(64, 16)


def norm_backward():
    x = rows()
    _, mean, rstd = A.native_layer_norm(x, [COLUMNS], None, None, 1e-5)
    return (x, x, [COLUMNS], mean, rstd, None, None, [True, False, False])


CALLS = {
    "aten::add.Tensor": lambda: (flat(), flat()),
    "aten::sub.Tensor": lambda: (flat(), flat(n=1)),
    "aten::mul.Tensor": lambda: (flat(), flat()),
    "aten::div.Tensor": lambda: (flat(), flat(n=1)),
    "aten::add_.Tensor": lambda: (flat(), flat()),
    "aten::relu": lambda: (flat(),),
    "aten::sigmoid": lambda: (flat(),),
    "aten::exp": lambda: (flat(),),
    "aten::neg": lambda: (flat(),),
    "aten::gelu": lambda: (flat(),),
    "aten::gelu_backward": lambda: (flat(), flat()),
    "aten::threshold_backward": lambda: (flat(), flat(), 0),
    "aten::clamp": lambda: (flat(), -0.5, 0.5),
    "aten::pow.Tensor_Scalar": lambda: (flat(), 2.0),
    "aten::lerp.Scalar": lambda: (flat(), flat(), 0.25),
    "aten::addcmul": lambda: (flat(), flat(), flat()),
    "aten::where.self": lambda: (flat(torch.uint8) > 0, flat(), flat(n=1)),
    "aten::clone": lambda: (rows().t(),),
    "aten::copy_": lambda: (flat(torch.float32), flat()),
    "aten::_to_copy": lambda: (flat(),),
    "aten::full_like": lambda: (flat(), 3.0),
    "aten::fill_.Scalar": lambda: (flat(), 3.0),
    "aten::arange": lambda: (LARGE,),
    "aten::tril": lambda: (rows(), -5),
    "aten::sum": lambda: (flat(torch.uint8) > 200,),
    "aten::sum.dim_IntList": lambda: (rows(), [0]),
    "aten::mean.dim": lambda: (rows(), [1]),
    "aten::linalg_vector_norm": lambda: (flat(),),
    "aten::cat": lambda: ([flat(n=1 << 30), flat(n=(1 << 30) + 9), flat(n=1 << 20)],),
    "aten::stack": lambda: ([flat(n=LARGE // 2 + 1), flat(n=LARGE // 2 + 1)], 1),
    "aten::_softmax": lambda: (rows(), 1, False),
    "aten::_log_softmax": lambda: (rows(), 1, False),
    "aten::native_layer_norm": lambda: (rows(), [COLUMNS], None, None, 1e-5),
    "aten::native_layer_norm_backward": norm_backward,
    "aten::embedding": lambda: (flat(n=1000 * 512).view(1000, 512), torch.arange((1 << 22) + 3, device="cuda") % 1000),
    "aten::index_select": lambda: (flat(), 0, torch.arange(LARGE - 1000, LARGE, device="cuda")),
    "aten::mm": lambda: (rows(), flat(n=COLUMNS * 16).view(COLUMNS, 16)),
    "aten::addmm": lambda: (flat(n=16), *narrow()),
    "aten::bmm": lambda: tuple(t.unsqueeze(0) for t in narrow()),
    "aten::native_dropout_backward": lambda: (flat(), flat(torch.uint8) > 0, 1.25),
}
KEYWORDS = {"aten::_to_copy": {"dtype": torch.float16}, "aten::arange": {"device": "cuda"}}


@pytest.fixture(autouse=True)
def memory():
    torch.manual_seed(0)
    yield
    torch.cuda.empty_cache()


def differing(got, want):
    """The largest difference, relative to 1 or to what is expected, and where it is."""
    worst = (0.0, 0)
    got, want = (t.contiguous().view(-1) for t in (got, want))
    for start in range(0, want.numel(), SHARE):
        a, b = (t[start : start + SHARE].float() for t in (got, want))
        off = ((a - b).abs() / b.abs().clamp(min=1)).nan_to_num(nan=math.inf)
        worst = max(worst, (float(off.max()), start + int(off.argmax())))
    return worst


@pytest.mark.parametrize("overload", CALLS)
def test_a_kernel_agrees_with_pytorch(overload):
    packet, _, name = overload.removeprefix("aten::").partition(".")
    op = getattr(getattr(A, packet), name or "default")
    made, keywords = CALLS[overload](), KEYWORDS.get(overload, {})
    mutable = packet.endswith("_")
    given = (made[0].clone(), *made[1:]) if mutable else made
    want = op(*given, **keywords)
    with library.use("cuda", ops=[overload], unverified=True) as registration:
        got = op(*made, **keywords)
    assert registration.counts.served[overload] == 1, registration.counts
    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want)), strict=True):
        assert (a is None) == (b is None)
        if b is not None:
            assert (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride())
            assert differing(a, b)[0] < (0.02 if b.dtype is not torch.float32 else 1e-3), differing(a, b)


def test_random_draws_reach_the_end_and_do_not_repeat():
    x = torch.empty(LARGE, dtype=torch.bfloat16, device="cuda")
    with library.use("cuda", ops=["aten::bernoulli_.float"], unverified=True) as registration:
        x.bernoulli_(0.25)
    assert registration.counts.served
    parts = [x[:SHARE], x[1 << 31 :], x[-SHARE:]]
    assert all(abs(float(p.float().mean()) - 0.25) < (0.01 if len(p) > 1000 else 0.3) for p in parts)
    assert not torch.equal(x[:77], x[1 << 31 :])
    assert not torch.equal(x[:1000], x[1 << 30 : (1 << 30) + 1000])
