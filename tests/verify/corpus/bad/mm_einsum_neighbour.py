# op: mm
# name: mm_einsum_neighbour
# family: A
# tries: writes the product as an einsum
# should be caught by: lint; dispatch guard (aten::bmm / mul / sum)
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
    return torch.einsum("ik,kj->ij", input, mat2)
