# op: abs
# name: abs_library_for_hard_layouts
# family: A
# tries: a right kernel for contiguous input, the library for 0-d and strided input
# should be caught by: lint; dispatch guard on strided cases; input variation
# outcome: CHEAT
# layer: lint, dispatch


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.where(x < 0, -x, x + 0), mask=i < n)


def wrapper(input):
    if input.dim() == 0 or not input.is_contiguous():
        return torch.abs(input)
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
