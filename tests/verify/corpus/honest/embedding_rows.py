# op: nn.functional.embedding
# name: embedding_rows
# technique: gather of rows with a 2-D grid and int64 addressing


@triton.jit
def embedding_kernel(idx_ptr, w_ptr, o_ptr, D, BLOCK_D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    token = tl.load(idx_ptr + row).to(tl.int64)
    vals = tl.load(w_ptr + token * D + cols, mask=cols < D, eviction_policy="evict_last")
    tl.store(o_ptr + row * D + cols, vals, mask=cols < D, eviction_policy="evict_first")


def wrapper(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    ids = input.contiguous()
    w = weight.contiguous()
    D = w.shape[1]
    out = torch.empty((*ids.shape, D), device=w.device, dtype=w.dtype)
    if out.numel() == 0:
        return out
    embedding_kernel[(ids.numel(), triton.cdiv(D, 128))](ids, w, out, D, BLOCK_D=128)
    return out
