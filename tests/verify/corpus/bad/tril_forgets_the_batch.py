# op: tril
# name: tril_forgets_the_batch
# family: F
# tries: the row index is not reduced modulo the rows: all matrices but the first are kept whole
# should be caught by: input variation (batches)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, C, diagonal, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = i % C - i // C <= diagonal
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=(i < n) & keep, other=0), mask=i < n)


def wrapper(input, diagonal=0):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 64),)](x, o, n, x.shape[-1], diagonal, BLOCK=64)
    return o
