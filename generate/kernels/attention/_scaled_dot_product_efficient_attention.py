"""aten::_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool
    compute_log_sumexp, float dropout_p=0., bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor
    log_sumexp, Tensor philox_seed, Tensor philox_offset)
aten::_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool
    compute_log_sumexp, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) ->
    (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor
    philox_seed, Tensor philox_offset, Tensor debug_attn_mask)

- Efficient attention: the output's memory order is [B, T, H, D]. log_sumexp is [B, H, T rounded up to 32],
  and infinity beyond T.
- cuDNN attention: the output has the memory order of `query`. log_sumexp is [B, H, T, 1].

The backward pass draws the dropout mask again from the returned seed and offset.
"""

import torch
import triton
from blocks.attention import attention, attention_tile, check_attention, shared_heads

OVERLOADS = ("aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_cudnn_attention")
DTYPES = ("bfloat16", "float16", "float32")

LSE_ROWS = 32  # ATen pads the rows of the logsumexp to a multiple


def empty_as(query, Dv):
    """Return a new [B, H, T, Dv] tensor whose dimensions have the same memory order as in `query`."""
    B, H, T, D = query.shape
    if Dv == D:
        return torch.empty_like(query)
    order = sorted([(-stride, dim) for dim, stride in enumerate(query.stride())])
    return torch.empty_permuted((B, H, T, Dv), [dim for _, dim in order], dtype=query.dtype, device=query.device)


def wrapper(
    query,
    key,
    value,
    attn_bias,
    compute_log_sumexp,
    dropout_p=0.0,
    is_causal=False,
    return_debug_mask=None,
    *,
    scale=None,
    philox,
):
    (B, H, Tq, D), Tk, Dv, device = query.shape, key.shape[2], value.shape[3], query.device
    efficient = return_debug_mask is None
    check_attention(query, key, value, H if efficient else shared_heads(query, key), Dv)
    if efficient:
        out = torch.empty((B, Tq, H, Dv), dtype=query.dtype, device=device).transpose(1, 2)
    else:
        out = empty_as(query, Dv)
    rows = triton.cdiv(Tq, LSE_ROWS) * LSE_ROWS if efficient else Tq
    shape = (B, H, rows if compute_log_sumexp or not efficient else 0)
    lse = torch.empty(shape, dtype=torch.float32, device=device)
    seed = torch.empty((), dtype=torch.int64, device=device)
    offset = torch.empty((), dtype=torch.int64, device=device)
    causal, tile = "upper" if is_causal else None, attention_tile(max(D, Dv), Tq, Tk, query.dtype)
    outs = out, lse if lse.numel() else None
    attention((query, key, value, attn_bias), outs, (seed, offset, None), causal, dropout_p, scale, philox, tile)
    if efficient:
        return out, lse, seed, offset
    return out, lse.unsqueeze(3), None, None, Tq, Tk, seed, offset, None
