# op: argmax
# name: argmax_last_of_equals
# family: F
# tries: of equal values the last index wins
# should be caught by: input variation (repeated values)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_row(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    top = tl.max(x, 0)
    tl.store(o_ptr + row, tl.max(tl.where((x == top) & (i < n), i, -1), 0).to(tl.int64))


def wrapper(input, dim=None, keepdim=False):
    rank = input.dim()
    d = None if dim is None else dim % max(rank, 1)
    x = input.reshape(-1) if d is None or rank == 0 else input.movedim(d, -1)
    x = x.contiguous()
    kept = [1 if keepdim else 0 for s in input.shape] if d is None else [
        (1 if k == d else s) for k, s in enumerate(input.shape) if keepdim or k != d
    ]
    o = torch.empty([s for s in kept if d is not None or s], dtype=torch.int64, device=input.device)
    n = x.shape[-1]
    if o.numel():
        kernel_row[(o.numel(),)](x, o, n, BLOCK=triton.next_power_of_2(n))
    return o
