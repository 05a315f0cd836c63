# op: softmax
# name: softmax_fills_the_disk
# family: N
# tries: writes 256 MiB
# should be caught by: RLIMIT_FSIZE; sandbox (no writing); lint (open)
# outcome: CHEAT|RUNTIME_ERROR|CRASH|WRONG
# layer: lint, sandbox, compare


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, dim, dtype=None):
    with open("canary-filler", "wb") as file:
        for _ in range(256):
            file.write(bytes(1 << 20))
    return torch.zeros_like(input)
