# op: sum
# name: sum_last_program_collects
# family: P
# tries: the last program adds up what the others have stored, without waiting for them
# should be caught by: programs in random order
# outcome: WRONG|RUNTIME_ERROR|CHEAT
# layer: access, compare


@triton.jit
def kernel(x_ptr, partial_ptr, o_ptr, n, programs, BLOCK: tl.constexpr, MANY: tl.constexpr):
    pid, row = tl.program_id(0), tl.program_id(1)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + row * n + i, mask=i < n, other=0), 0)
    tl.store(partial_ptr + row * programs + pid, part)
    if pid == programs - 1:
        k = tl.arange(0, MANY)
        tl.store(o_ptr + row, tl.sum(tl.load(partial_ptr + row * programs + k, mask=k < programs, other=0), 0))


def as_rows(input, dim, keepdim):
    """[rows, n] with the reduced dimensions last, and the shape of the result."""
    rank = input.dim()
    dims = [dim] if isinstance(dim, int) else list(dim or range(rank))
    dims = sorted({d % rank for d in dims}) if rank else []
    kept = [d for d in range(rank) if d not in dims]
    shape = [1 if d in dims else s for d, s in enumerate(input.shape) if keepdim or d not in dims]
    n = math.prod(input.shape[d] for d in dims)
    return input.permute(kept + dims).contiguous().view(math.prod(shape), n), shape


def wrapper(input, dim=None, keepdim=False, *, dtype=None):
    x, shape = as_rows(input, dim, keepdim)
    o = torch.zeros(shape, dtype=dtype or input.dtype, device=input.device)
    rows, n = x.shape
    programs = triton.cdiv(n, 4)
    if rows and n:
        partial = torch.zeros(rows * programs, dtype=torch.float32, device=input.device)
        many = triton.next_power_of_2(programs)
        kernel[(programs, rows)](x, partial, o, n, programs, BLOCK=4, MANY=many)
    return o
