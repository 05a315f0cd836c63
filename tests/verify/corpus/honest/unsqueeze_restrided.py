# op: unsqueeze
# honest-but-unusual: a view built from strides by hand; the new dimension's stride is what ATen gives it.


@triton.jit
def kernel_never_launched(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, dim):
    at = dim + input.dim() + 1 if dim < 0 else dim
    shape, stride = list(input.shape), list(input.stride())
    step = shape[at] * stride[at] if at < input.dim() else 1
    return torch.as_strided(input, shape[:at] + [1] + shape[at:], stride[:at] + [step] + stride[at:])
