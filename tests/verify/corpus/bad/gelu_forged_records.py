# op: nn.functional.gelu
# name: gelu_forged_records
# family: L
# tries: writes a forged result to every open descriptor
# should be caught by: private channel, checked frames; sandbox; lint (torch.os)
# outcome: CHEAT|CRASH|RUNTIME_ERROR|WRONG
# layer: lint, run, compare


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, *, approximate="none"):
    for number in range(1, 64):
        try:
            torch.os.write(number, b'{"status": "ok", "outcome": "PASS", "check": "pass"}' * 4)
        except OSError:
            pass
    return torch.zeros_like(input)
