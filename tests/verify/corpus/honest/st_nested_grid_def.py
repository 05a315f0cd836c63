# op: sqrt
# name: st_nested_grid_def
# technique: the grid is a nested def inside the wrapper


@triton.jit
def sqrt_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(o_ptr + i, tl.sqrt(tl.load(x_ptr + i, mask=m).to(tl.float32)), mask=m)


def wrapper(x):
    x = x.contiguous()
    o = torch.empty(x.shape, dtype=x.dtype if x.is_floating_point() else torch.float32, device=x.device)
    n = o.numel()

    def grid(meta):
        return (triton.cdiv(n, meta["BLOCK"]),)

    if n > 0:
        sqrt_kernel[grid](x, o, n, BLOCK=256)
    return o
