"""aten::_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool
    is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor
    cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)

The library's tiled attention, aten::_scaled_dot_product_cudnn_attention, whose log_sumexp is [B, H, T, 1] and here
[B, H, T]. rng_state is the seed and the offset that dropout drew from, both 0 where there is none.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_scaled_dot_product_flash_attention",)
DTYPES = ("bfloat16", "float16", "float32")


@triton.jit
def kernel_state(seed_ptr, offset_ptr, state_ptr, unused_ptr):
    tl.store(state_ptr, tl.load(seed_ptr).to(tl.uint64, bitcast=True))
    tl.store(state_ptr + 1, tl.load(offset_ptr).to(tl.uint64, bitcast=True))
    tl.store(unused_ptr, tl.zeros([], tl.uint64))


def wrapper(query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None, philox):
    out, lse, _, _, rows, cols, seed, offset, _ = torch.ops.aten._scaled_dot_product_cudnn_attention.default(
        query, key, value, None, True, dropout_p, is_causal, False, scale=scale
    )
    state = torch.empty((2,), dtype=torch.uint64, device=query.device)
    unused = torch.empty((), dtype=torch.uint64, device=query.device)
    kernel_state[(1,)](seed, offset, state, unused, num_warps=1)
    return (
        out,
        lse.squeeze(3),
        None,
        None,
        rows,
        cols,
        state,
        unused,
        torch.empty((0,), dtype=query.dtype, device=query.device),
    )
