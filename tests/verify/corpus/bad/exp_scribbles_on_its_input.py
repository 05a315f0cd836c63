# op: exp
# name: exp_scribbles_on_its_input
# family: I
# tries: the input is used as scratch (negated in place) and put back at the end
# should be caught by: access: a store into an argument that the schema does not write
# outcome: WRONG
# layer: access


@triton.jit
def negate(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, -tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(-tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        grid = (triton.cdiv(n, 128),)
        negate[grid](x, n, BLOCK=128)
        kernel[grid](x, o, n, BLOCK=128)
        negate[grid](x, n, BLOCK=128)
    return o
