# op: nn.functional.relu
# name: relu_scripted
# family: T
# tries: torch.jit.trace compiles the library call
# should be caught by: lint (torch.jit); dispatch guard
# outcome: CHEAT|RUNTIME_ERROR
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    return torch.jit.trace(lambda x: x.relu(), (input,))(input)
