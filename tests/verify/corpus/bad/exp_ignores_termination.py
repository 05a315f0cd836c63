# op: exp
# name: exp_ignores_termination
# family: N
# tries: ignores SIGTERM and waits
# should be caught by: SIGKILL of the whole tree; lint (import)
# outcome: CHEAT|TIMEOUT|RUNTIME_ERROR
# layer: lint, time


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while input.dim() >= 0:
        signal.sigtimedwait([signal.SIGUSR1], 1)
