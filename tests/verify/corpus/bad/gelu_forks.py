# op: nn.functional.gelu
# name: gelu_forks
# family: N
# tries: forks eight children that outlive the call in a session of their own (for two seconds)
# should be caught by: sandbox (fork); the whole tree is killed; lint (torch.os)
# outcome: CHEAT|RUNTIME_ERROR|WRONG
# layer: lint, sandbox, compare


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, *, approximate="none"):
    for _ in range(8):
        if torch.os.fork() == 0:
            torch.os.setsid()
            open(f"canary-child-{torch.os.getpid()}", "w").close()
            for _ in range(20_000_000):
                pass
            torch.os._exit(0)
    return torch.zeros_like(input)
