"""aten::_scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor
    out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool
    is_causal, Tensor philox_seed, Tensor philox_offset, *, float? scale=None) -> (Tensor grad_query, Tensor grad_key,
    Tensor grad_value)

The library's tiled backward of attention, aten::_scaled_dot_product_efficient_attention_backward. philox_seed is the
rng_state of the forward call: the seed and the offset.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_scaled_dot_product_flash_attention_backward",)
DTYPES = ("bfloat16", "float16", "float32")


@triton.jit
def kernel_state(state_ptr, seed_ptr, offset_ptr):
    tl.store(seed_ptr, tl.load(state_ptr).to(tl.int64, bitcast=True))
    tl.store(offset_ptr, tl.load(state_ptr + 1).to(tl.int64, bitcast=True))


def wrapper(
    grad_out,
    query,
    key,
    value,
    out,
    logsumexp,
    cum_seq_q,
    cum_seq_k,
    max_q,
    max_k,
    dropout_p,
    is_causal,
    philox_seed,
    philox_offset,
    *,
    scale=None,
):
    seed = torch.empty((), dtype=torch.int64, device=query.device)
    offset = torch.empty((), dtype=torch.int64, device=query.device)
    kernel_state[(1,)](philox_seed, seed, offset, num_warps=1)
    return torch.ops.aten._scaled_dot_product_efficient_attention_backward.default(
        grad_out,
        query,
        key,
        value,
        None,
        out,
        logsumexp,
        seed,
        offset,
        dropout_p,
        [True, True, True, False],
        is_causal,
        scale=scale,
    )[:3]
