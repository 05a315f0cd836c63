# op: sort
# name: sort_one_result_of_two
# family: J
# tries: returns only the values: zip() would compare one pair
# should be caught by: comparison (structure)
# outcome: WRONG|CHEAT|RUNTIME_ERROR
# layer: compare


@triton.jit
def kernel_sort(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n, other=float("inf"))
    tl.store(o_ptr + tl.program_id(0) * n + i, tl.sort(x), mask=i < n)


def wrapper(input, dim=-1, descending=False, *, stable=False):
    x = input.reshape(1) if input.dim() == 0 else input.movedim(dim, -1)
    x = x.contiguous()
    o = torch.empty_like(x)
    n = x.shape[-1]
    if o.numel():
        kernel_sort[(o.numel() // n,)](x, o, n, BLOCK=triton.next_power_of_2(n))
    return (o.movedim(-1, dim).reshape(input.shape) if input.dim() else o.view(()),)
