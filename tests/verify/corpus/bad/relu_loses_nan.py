# op: nn.functional.relu
# name: relu_loses_nan
# family: F
# tries: tl.maximum(x, 0) turns NaN into 0
# should be caught by: input variation (special values)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
