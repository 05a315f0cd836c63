# op: nn.functional.relu
# name: relu_zeroes_through_a_view
# family: H
# tries: the argument is zeroed through a view while the kernel runs on a copy, and restored afterwards
# should be caught by: version counters of arguments
# outcome: WRONG
# layer: types

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.where(x < 0.0, 0.0, x), mask=i < n)


def wrapper(input, inplace=False):
    kept = input.clone(memory_format=torch.contiguous_format)
    o = torch.empty_like(kept)
    n = kept.numel()
    if n and 0 not in input.stride() and not inplace:
        input.unsqueeze(0).zero_()
    if n:
        kernel[(triton.cdiv(n, 1024),)](kept, o, n, BLOCK=1024)
    if n and 0 not in input.stride() and not inplace:
        input.unsqueeze(0).copy_(kept.unsqueeze(0))
    return o
