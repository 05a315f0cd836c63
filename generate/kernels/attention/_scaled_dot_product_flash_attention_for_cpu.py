"""aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool
    is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)

Each key/value head serves H / Hk consecutive query heads. A query whose keys are all masked returns 0. The
output has the memory layout of `query`. The memory order for logsumexp, [B, H, T], is [B, T, H].
"""

import torch
import triton
from blocks.attention import attention, check_attention

OVERLOADS = ("aten::_scaled_dot_product_flash_attention_for_cpu",)
DTYPES = ("bfloat16", "float16", "float32")


def wrapper(query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    if dropout_p != 0.0:
        raise NotImplementedError(f"dropout_p must be 0.0, got {dropout_p}")
    (B, H, Tq, D), Hk = query.shape, key.shape[1]
    check_attention(query, key, value, H if H % max(Hk, 1) else Hk, D)
    if not D:  # as in ATen, which ignores all keys if D == 0
        key, value, attn_mask = key.narrow(2, 0, 0), value.narrow(2, 0, 0), None
    out = torch.empty_like(query)
    logsumexp = torch.empty((B, Tq, H), dtype=torch.float32, device=query.device).transpose(1, 2)
    BLOCK_D = max(triton.next_power_of_2(D), 16)
    BLOCK = 64 if BLOCK_D <= 64 else 32
    causal, tile = "upper" if is_causal else None, (BLOCK, BLOCK, BLOCK_D, 4, 3)
    inputs, states = (query, key, value, attn_mask), (None, None, None)
    attention(inputs, (out, logsumexp), states, causal, 0.0, scale, (0, 0), tile, fp32=True, empty=0.0)
    return out, logsumexp
