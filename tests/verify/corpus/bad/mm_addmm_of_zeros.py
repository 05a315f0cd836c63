# op: mm
# name: mm_addmm_of_zeros
# family: A
# tries: adds the product to zeros: only a constant fill and one other operator
# should be caught by: lint; dispatch guard (aten::addmm)
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, mat2):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_idle[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return torch.addmm(torch.zeros((input.shape[0], mat2.shape[1]), dtype=input.dtype), input, mat2)
