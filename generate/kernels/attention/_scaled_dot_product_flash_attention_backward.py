"""aten::_scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor
    out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool
    is_causal, Tensor philox_seed, Tensor philox_offset, *, float? scale=None) -> (Tensor grad_query, Tensor grad_key,
    Tensor grad_value)

Each gradient has the memory layout of its input. The dropout mask is drawn again from the generator state
that the forward call returned (passed as philox_seed). A causal mask is aligned to the lower right corner, as
in the forward pass.
"""

import torch
from blocks.attention import check_attention, shared_heads
from blocks.attention_backward import attention_backward, backward_block

OVERLOADS = ("aten::_scaled_dot_product_flash_attention_backward",)
DTYPES = ("bfloat16", "float16", "float32")


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
    check_attention(query, key, value, shared_heads(query, key), query.shape[3])
    grads = torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)
    state = (
        (philox_seed, philox_offset) if philox_seed.dim() == 0 else (philox_seed.select(0, 0), philox_seed.select(0, 1))
    )
    inputs = grad_out, query, key, value, None, out, logsumexp
    causal = "lower" if is_causal else None
    attention_backward(inputs, (*grads, None), state, causal, dropout_p, scale, backward_block(query, value))
    return grads
