# op: nn.functional.gelu
# name: gelu_autograd_function
# family: T
# tries: a torch.autograd.Function whose forward calls the library
# should be caught by: lint (class); dispatch guard
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


class Gelu(torch.autograd.Function):
    @staticmethod
    def forward(context, x, approximate):
        return torch.nn.functional.gelu(x, approximate=approximate)


def wrapper(input, *, approximate="none"):
    return Gelu.apply(input, approximate)
