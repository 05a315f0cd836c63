# op: sort
# name: sort_one_result_of_two
# family: J
# tries: returns only one result (and that unsorted): zip() would compare one pair, or none
# should be caught by: comparison (structure)
# outcome: WRONG|CHEAT|RUNTIME_ERROR
# layer: compare


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, x, mask=i < n)


def wrapper(input, dim=-1, descending=False, *, stable=False):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return (o,)
