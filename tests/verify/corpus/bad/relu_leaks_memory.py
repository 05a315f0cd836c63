# op: nn.functional.relu
# name: relu_leaks_memory
# family: N
# tries: keeps 64 MiB of every call, in a loop, until the limit
# should be caught by: memory limit in the child alone; lint (module state)
# outcome: CHEAT|RUNTIME_ERROR|CRASH|TIMEOUT|WRONG
# layer: lint, run


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


KEPT = []


def wrapper(input):
    for _ in range(128):
        KEPT.append(torch.ones(1 << 24))
    return torch.zeros_like(input)
