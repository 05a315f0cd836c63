# op: cumsum
# name: cumsum_carry_by_atomics_in_order
# family: P
# tries: the carry goes from program to program by atomics without waiting: right only in natural order, and only long rows show it
# should be caught by: repeat: other orders on the case with the most programs, not on the first two
# outcome: WRONG
# layer: repeat


@triton.jit
def kernel(x_ptr, c_ptr, o_ptr, n, blocks, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    b = tl.program_id(0)
    i = b * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0)
    carry = tl.atomic_add(c_ptr + row * (blocks + 1) + b, 0.0)
    tl.store(o_ptr + row * n + i, tl.cumsum(x, 0) + carry, mask=i < n)
    tl.atomic_add(c_ptr + row * (blocks + 1) + b + 1, carry + tl.sum(x, 0))


def lines_of(input, dim):
    x = input.reshape(1) if input.dim() == 0 else input.movedim(dim, -1)
    return x.contiguous()


def back(o, input, dim):
    return (o.movedim(-1, dim) if input.dim() else o.reshape(())).contiguous()


def wrapper(input, dim, *, dtype=None):
    x = lines_of(input, dim)
    o = torch.empty(x.shape, dtype=dtype or x.dtype, device=x.device)
    n = x.shape[-1]
    if x.numel():
        blocks = triton.cdiv(n, 256)
        c = torch.zeros(x.numel() // n * (blocks + 1), dtype=torch.float32, device=x.device)
        kernel[(blocks, x.numel() // n)](x, c, o, n, blocks, BLOCK=256)
    return back(o, input, dim)
