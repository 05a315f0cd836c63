# op: tanh
# name: tanh_vmapped
# family: T
# tries: torch.func.vmap around the library call
# should be caught by: lint (torch.func); dispatch guard
# outcome: CHEAT|RUNTIME_ERROR
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    if input.dim() == 0:
        return torch.func.vmap(torch.tanh)(input.view(1)).view(())
    return torch.func.vmap(torch.tanh)(input)
