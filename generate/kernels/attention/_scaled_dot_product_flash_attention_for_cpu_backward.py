"""aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value,
    Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) ->
    (Tensor grad_query, Tensor grad_key, Tensor grad_value)

Each key/value head serves H / Hk consecutive query heads and receives the sum over their gradients. The
memory order for gradients is [B, T, H, D]. dropout_p is ignored, as in ATen, because the forward operator
accepts only 0.
"""

from blocks.attention import check_attention
from blocks.attention_backward import attention_backward, empty_like_bthd

OVERLOADS = ("aten::_scaled_dot_product_flash_attention_for_cpu_backward",)
DTYPES = ("bfloat16", "float16", "float32")


def wrapper(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask=None, scale=None):
    (H, D), Hk = (query.shape[1], query.shape[3]), key.shape[1]
    check_attention(query, key, value, H if H % max(Hk, 1) else Hk, D)
    grads = *[empty_like_bthd(x) for x in (query, key, value)], None
    inputs, causal = (grad_out, query, key, value, attn_mask, out, logsumexp), "upper" if is_causal else None
    block = 64 if D <= 32 else 32 if D <= 256 else 16
    attention_backward(inputs, grads, (None, None), causal, 0.0, scale, block, fp32=True)
    return grads[:3]
