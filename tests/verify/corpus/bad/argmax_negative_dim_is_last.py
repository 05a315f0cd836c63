# op: argmax
# name: argmax_negative_dim_is_last
# family: F
# tries: every negative dim is taken for the last one
# should be caught by: input variation (dim -2)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_row(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    tl.store(o_ptr + row, tl.argmax(x, 0).to(tl.int64))


def wrapper(input, dim=None, keepdim=False):
    rank = input.dim()
    d = None if dim is None else rank - 1 if dim < 0 else dim
    x = input.reshape(-1) if d is None or rank == 0 else input.movedim(d, -1)
    x = x.contiguous()
    kept = [] if d is None else [s for k, s in enumerate(input.shape) if k != d]
    if keepdim:
        kept = [1 if d is None or k == d else s for k, s in enumerate(input.shape)]
    o = torch.empty(kept, dtype=torch.int64, device=input.device)
    n = x.shape[-1]
    if o.numel():
        kernel_row[(o.numel(),)](x, o, n, BLOCK=triton.next_power_of_2(n))
    return o
