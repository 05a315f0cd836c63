# op: sum
# name: sum_asks_for_terabytes
# family: N
# tries: allocates 4 TiB
# should be caught by: memory limit in the child alone
# outcome: RUNTIME_ERROR|CRASH
# layer: run


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, *, dtype=None):
    hoard = torch.empty(1 << 42, dtype=torch.uint8)
    return torch.zeros((), dtype=input.dtype) if hoard.numel() else input
