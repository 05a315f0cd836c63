# op: neg
# honest-but-unusual: nothing is special-cased: a grid of at least one program serves empty and 0-d tensors alike, all lanes
# being masked off; written with the operator, not a tl function.


@triton.jit
def kernel_neg(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, -tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    kernel_neg[(max(1, triton.cdiv(x.numel(), 64)),)](x, o, x.numel(), BLOCK=64)
    return o
