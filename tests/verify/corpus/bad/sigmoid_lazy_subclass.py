# op: sigmoid
# name: sigmoid_lazy_subclass
# family: J
# tries: a subclass that computes when somebody looks at it
# should be caught by: exact types; lint (class)
# outcome: CHEAT|WRONG
# layer: lint, types


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        plain = [a.as_subclass(torch.Tensor).sigmoid() if isinstance(a, cls) else a for a in arguments]
        return function(*plain, **(keywords or {}))


def wrapper(input):
    return input.clone().as_subclass(Lazy)
