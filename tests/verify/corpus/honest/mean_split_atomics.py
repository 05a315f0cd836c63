# op: mean
# honest-but-unusual: every program adds its part of a row to one float with tl.atomic_add, so the order of the sum (and the
# last bit of the result) is open; division and rounding to the output's type happen in a second launch.


@triton.jit
def kernel_add_up(x_ptr, acc_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row.to(tl.int64) * n + i, mask=i < n, other=0).to(tl.float32)
    tl.atomic_add(acc_ptr + row, tl.sum(x, 0), sem="relaxed")


@triton.jit
def kernel_divide(acc_ptr, o_ptr, rows, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(acc_ptr + i, mask=i < rows, other=0)
    tl.store(o_ptr + i, (total / n).to(o_ptr.dtype.element_ty), mask=i < rows)


def wrapper(input, dim=None, keepdim=False, *, dtype=None):
    rank = input.dim()
    dims = [dim] if isinstance(dim, int) else list(dim or range(rank))
    dims = sorted({d % rank for d in dims}) if rank else []
    kept = [d for d in range(rank) if d not in dims]
    x = input.permute(kept + dims).contiguous()
    rows = math.prod(input.shape[d] for d in kept)
    n = math.prod(input.shape[d] for d in dims)
    shape = [input.shape[d] for d in kept]
    if keepdim:
        shape = [1 if d in dims else input.shape[d] for d in range(rank)]
    acc = torch.zeros(rows, dtype=torch.float32, device=input.device)
    o = torch.empty(shape, dtype=dtype or input.dtype, device=input.device)
    if rows and n:
        kernel_add_up[(rows, triton.cdiv(n, 256))](x, acc, n, BLOCK=256)
    if rows:
        kernel_divide[(triton.cdiv(rows, 128),)](acc, o, rows, n, BLOCK=128)
    return o
