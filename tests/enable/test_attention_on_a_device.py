"""Fused attention of the library beside PyTorch's own, forward and backward, on the same device.

On a GPU: pytest -m gpu tests/enable/test_attention_on_a_device.py
"""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from capture.device import compiles
from enable import library

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.skipif(not compiles(), reason="needs kernels compiled: pytest -m gpu, without TRITON_INTERPRET"),
]
OVERLOADS = {
    SDPBackend.FLASH_ATTENTION: "aten::_scaled_dot_product_flash_attention",
    SDPBackend.EFFICIENT_ATTENTION: "aten::_scaled_dot_product_efficient_attention",
    SDPBackend.CUDNN_ATTENTION: "aten::_scaled_dot_product_cudnn_attention",
}
B, H, T, D = 2, 3, 130, 64


def contiguous():
    return [torch.randn(B, H, T, D, device="cuda", dtype=torch.bfloat16) for _ in range(3)]


def views():
    """As nanoGPT's: parts of one projection, heads behind tokens."""
    joined = torch.randn(B, T, 3, H, D, device="cuda", dtype=torch.bfloat16)
    return [t.transpose(1, 2) for t in joined.unbind(2)]


@pytest.mark.parametrize("backend", OVERLOADS, ids=lambda b: b.name)
@pytest.mark.parametrize("made", [contiguous, views])
@pytest.mark.parametrize("causal", [True, False])
def test_attention_is_pytorchs(backend, made, causal):
    torch.manual_seed(0)
    inputs = [t.requires_grad_() for t in made()]
    seed = torch.randn(B, H, T, D, device="cuda", dtype=torch.bfloat16)

    def answers():
        with sdpa_kernel(backend):
            out = scaled_dot_product_attention(*inputs, is_causal=causal)
            return [out, *torch.autograd.grad(out, inputs, seed)]

    want, names = answers(), [OVERLOADS[backend] + end for end in ("", "_backward")]
    with library.use("cuda", ops=names, unverified=True) as registration:
        got = answers()
    assert dict(registration.counts.served) == dict.fromkeys(names, 1)
    for a, b in zip(got, want, strict=True):
        assert (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride())
        torch.testing.assert_close(a, b, rtol=0.05, atol=0.02)
