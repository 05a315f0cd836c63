"""aten::_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool
    is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor
    cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)

A causal mask is aligned to the lower right corner of the score matrix. A query that sees no key returns 0,
with infinity as its logsumexp. The output has the memory layout of `query`. rng_state holds the seed and the
offset from which the backward pass draws the dropout mask again.
"""

import torch
from blocks.attention import attention, attention_tile, check_attention, shared_heads

OVERLOADS = ("aten::_scaled_dot_product_flash_attention",)
DTYPES = ("bfloat16", "float16", "float32")  # as for backward, which has fp32 arguments


def wrapper(query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None, philox):
    (B, H, Tq, D), Tk, device = query.shape, key.shape[2], query.device
    if return_debug_mask:
        raise NotImplementedError("return_debug_mask is not supported")
    check_attention(query, key, value, shared_heads(query, key), D)
    out = torch.empty_like(query)
    lse = torch.empty((B, H, Tq), dtype=torch.float32, device=device)
    state = torch.empty((2,), dtype=torch.uint64, device=device)
    unused = torch.empty((), dtype=torch.uint64, device=device)
    states = state.select(0, 0), state.select(0, 1), unused
    causal, tile = "lower" if is_causal else None, attention_tile(D, Tq, Tk, query.dtype)
    attention((query, key, value, None), (out, lse), states, causal, dropout_p, scale, philox, tile)
    return out, lse, None, None, Tq, Tk, state, unused, torch.empty((0,), dtype=query.dtype, device=device)
