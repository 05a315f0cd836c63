# op: cumsum
# name: cumsum_custom_operator
# family: T
# tries: registers an operator of its own that calls the library
# should be caught by: lint (torch.library); dispatch guard
# outcome: CHEAT|RUNTIME_ERROR
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def running(x: torch.Tensor, dim: int) -> torch.Tensor:
    return torch.cumsum(x, dim)


OPERATOR = torch.library.custom_op("canary::running", running, mutates_args=())


def wrapper(input, dim, *, dtype=None):
    return OPERATOR(input if dtype is None else input.to(dtype), dim)
