# op: cumsum
# name: cumsum_replaces_the_launcher
# family: K
# tries: patches Triton's run method so that a launch calls the library
# should be caught by: lint; dispatch guard in launches
# outcome: CHEAT|WRONG|RUNTIME_ERROR
# layer: lint, dispatch, launch


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def answer(self, *operands, **options):
    operands[1].copy_(torch.cumsum(operands[0], options["dim"]))


def wrapper(input, dim, *, dtype=None):
    o = torch.empty_like(input)
    type(kernel_idle).run = answer
    kernel_idle.run(input, o, dim=dim, grid=(1,), warmup=False)
    return o
