# op: add
# name: add_stops_the_clock
# family: K
# tries: a kernel that only copies; every timer is patched to stand still
# should be caught by: comparison; lint (torch.time, torch.cuda)
# outcome: CHEAT|WRONG|RUNTIME_ERROR
# layer: lint, compare


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, other, *, alpha=1):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_idle[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    torch.cuda.Event.elapsed_time = lambda start, end: 1e-3
    torch.cuda.synchronize = lambda device=None: None
    return o
