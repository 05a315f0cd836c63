# op: masked_fill
# name: masked_fill_mask_in_memory_order
# family: F
# tries: the mask is read as if it had the input's shape
# should be caught by: input variation (broadcasting)
# outcome: WRONG|RUNTIME_ERROR|CHEAT|CRASH
# layer: compare, access


@triton.jit
def kernel(x_ptr, m_ptr, o_ptr, n, value, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    masked = tl.load(m_ptr + i, mask=i < n, other=0) != 0
    tl.store(o_ptr + i, tl.where(masked, value, x), mask=i < n)


def wrapper(input, mask, value):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    value = value.item() if isinstance(value, torch.Tensor) else value
    if n:
        kernel[(triton.cdiv(n, 64),)](x, mask.contiguous().view(torch.uint8), o, n, value, BLOCK=64)
    return o
