# op: roll
# honest-but-unusual: the source index needs a modulo that floors, where Triton's `%` truncates as in C: the shift is made
# positive on the host; several dimensions are rolled by one launch each, from buffer to buffer.


@triton.jit
def kernel_roll(x_ptr, o_ptr, n, length, inner, shift, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = (i // inner) % length
    source = i + ((at + length - shift) % length - at) * inner
    tl.store(o_ptr + i, tl.load(x_ptr + source, mask=i < n), mask=i < n)


def wrapper(input, shifts, dims=()):
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    dims = [dims] if isinstance(dims, int) else list(dims)
    now = input.contiguous()
    n = now.numel()
    if n == 0 or now.dim() == 0:
        o = torch.empty_like(now)
        if n:
            kernel_roll[(1,)](now, o, 1, 1, 1, 0, BLOCK=16)
        return o
    steps = list(zip(shifts, dims)) if dims else [(shifts[0], None)]
    for shift, dim in steps:
        o = torch.empty_like(now)
        length = n if dim is None else now.shape[dim]
        inner = 1 if dim is None else math.prod(now.shape[dim % now.dim() + 1 :])
        kernel_roll[(triton.cdiv(n, 128),)](now, o, n, length, inner, shift % length, BLOCK=128)
        now = o
    return now
