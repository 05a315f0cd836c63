"""aten::_scaled_dot_product_cudnn_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor
    out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, Tensor attn_bias, Tensor cum_seq_q, Tensor
    cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, *, float? scale=None) -> (Tensor, Tensor,
    Tensor)

Each gradient has the memory layout of its input. The dropout mask is drawn again from the forward call's seed
and offset.
"""

import torch
from blocks.attention import check_attention, shared_heads
from blocks.attention_backward import attention_backward, backward_block

OVERLOADS = ("aten::_scaled_dot_product_cudnn_attention_backward",)
DTYPES = ("bfloat16", "float16", "float32")


def wrapper(
    grad_out,
    query,
    key,
    value,
    out,
    logsumexp,
    philox_seed,
    philox_offset,
    attn_bias,
    cum_seq_q,
    cum_seq_k,
    max_q,
    max_k,
    dropout_p,
    is_causal,
    *,
    scale=None,
):
    check_attention(query, key, value, shared_heads(query, key), value.shape[3])
    grads = torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)
    inputs = grad_out, query, key, value, attn_bias, out, logsumexp
    causal, block = "upper" if is_causal else None, backward_block(query, value)
    attention_backward(inputs, (*grads, None), (philox_seed, philox_offset), causal, dropout_p, scale, block)
    return grads
