# op: sum
# name: sum_ignores_keepdim
# family: F
# tries: keepdim is never looked at
# should be caught by: comparison (shape)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_rows(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n + i, mask=i < n, other=0).to(tl.float32)
    tl.store(o_ptr + row, tl.sum(acc, 0).to(o_ptr.dtype.element_ty))


def wrapper(input, dim=None, keepdim=False, *, dtype=None):
    rank = input.dim()
    dims = list(range(rank)) if not dim else [dim % rank] if isinstance(dim, int) else [d % max(rank, 1) for d in dim]
    dims = dims if rank else []
    kept = [d for d in range(rank) if d not in dims]
    x = input.permute(kept + dims).contiguous()
    o = torch.zeros([input.shape[d] for d in kept], dtype=dtype or input.dtype, device=input.device)
    if x.numel():
        kernel_rows[(o.numel(),)](x, o, x.numel() // o.numel(), BLOCK=64)
    return o
