# op: sum
# name: sum_hard_exit
# family: L
# tries: ends the process with status 0 before anything is compared
# should be caught by: no record is no pass; lint (torch.os)
# outcome: CHEAT|CRASH|RUNTIME_ERROR
# layer: lint, run


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, *operands, **options):
    torch.os._exit(0)
