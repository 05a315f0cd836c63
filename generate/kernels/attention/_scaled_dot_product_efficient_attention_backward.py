"""aten::_scaled_dot_product_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor value,
    Tensor attn_bias, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, float dropout_p, bool[4]
    grad_input_mask, bool is_causal=False, *, float? scale=None) -> (Tensor, Tensor, Tensor, Tensor)

The memory order for the gradients with respect to query, key and value is [B, T, H, D]. The dropout mask is
drawn again from the forward call's seed and offset.
"""

import torch
from blocks.attention import check_attention
from blocks.attention_backward import attention_backward, backward_block, empty_like_bthd

OVERLOADS = ("aten::_scaled_dot_product_efficient_attention_backward",)
DTYPES = ("bfloat16", "float16", "float32")


def wrapper(
    grad_out_,
    query,
    key,
    value,
    attn_bias,
    out,
    logsumexp,
    philox_seed,
    philox_offset,
    dropout_p,
    grad_input_mask,
    is_causal=False,
    *,
    scale=None,
):
    grad_bias = None
    if attn_bias is not None and grad_input_mask[3]:
        shape = (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
        if tuple(attn_bias.shape) != shape:
            raise NotImplementedError(
                f"the gradient for bias {tuple(attn_bias.shape)}, which broadcasts to {shape}, is not supported"
            )
        grad_bias = torch.empty_like(attn_bias)
    check_attention(query, key, value, query.shape[1], value.shape[3])
    grads = *[empty_like_bthd(x) for x in (query, key, value)], grad_bias
    inputs = grad_out_, query, key, value, attn_bias, out, logsumexp
    causal, block = "upper" if is_causal else None, backward_block(query, value)
    attention_backward(inputs, grads, (philox_seed, philox_offset), causal, dropout_p, scale, block)
    return *[g if wanted else None for g, wanted in zip(grads, grad_input_mask, strict=False)][:3], grad_bias
