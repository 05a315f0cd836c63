# op: nn.functional.gelu
# name: gelu_late_writer
# family: O
# tries: a timer thread writes the answer after the call has returned
# should be caught by: outputs copied at return; threads counted; lint (import)
# outcome: CHEAT|WRONG|RUNTIME_ERROR
# layer: lint, compare, sandbox


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, *, approximate="none"):
    import threading

    o = torch.zeros_like(input)
    threading.Timer(0.01, lambda: o.copy_(torch.nn.functional.gelu(input, approximate=approximate))).start()
    return o
