# op: mean
# name: mean_tensor_methods
# family: C
# tries: a chain of methods
# should be caught by: lint; dispatch guard (aten::sum, aten::div)
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, dim=None, keepdim=False, *, dtype=None):
    if dim is None or dim == []:
        dim = tuple(range(input.dim()))
    total = input.sum(dim, keepdim=keepdim, dtype=dtype)
    return total.div_(max(1, input.numel()) / max(1, total.numel()))
