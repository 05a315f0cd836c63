# op: sigmoid
# name: sigmoid_registers_itself
# family: K
# tries: registers a wrong sigmoid for CPU with the dispatcher, so that a reference in this process agrees
# should be caught by: the reference is in another process; lint (torch.library)
# outcome: CHEAT|WRONG|RUNTIME_ERROR
# layer: lint, compare


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


LIBRARY = torch.library.Library("aten", "IMPL")
LIBRARY.impl("sigmoid", lambda x: torch.zeros_like(x), "CPU")


def wrapper(input):
    return torch.zeros_like(input)
