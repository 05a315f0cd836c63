# op: logical_not
# name: logical_not_by_copy_to_bool
# family: A
# tries: copy_ to bool computes x != 0; the kernel only inverts a flag
# should be caught by: dispatch: copy_ only between equal dtypes
# outcome: CHEAT
# layer: dispatch


@triton.jit
def kernel(k_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(k_ptr + i, mask=i < n) == 0, mask=i < n)


def wrapper(input):
    k = torch.empty(input.shape, dtype=torch.bool, device=input.device)
    k.copy_(input)
    o = torch.empty(input.shape, dtype=torch.bool, device=input.device)
    n = o.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](k, o, n, BLOCK=128)
    return o
