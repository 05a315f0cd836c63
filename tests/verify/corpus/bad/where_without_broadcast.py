# op: where
# name: where_without_broadcast
# family: F
# tries: reads the operands as if all had the condition's shape
# should be caught by: input variation (broadcasting)
# outcome: WRONG|RUNTIME_ERROR|CHEAT|CRASH
# layer: compare, access


@triton.jit
def kernel(c_ptr, x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.load(c_ptr + i, mask=i < n, other=0)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    y = tl.load(y_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.where(c != 0, x, y), mask=i < n)


def wrapper(condition, input, other):
    c = condition.contiguous()
    o = torch.empty(condition.shape, dtype=torch.result_type(input, other), device=input.device)
    n = o.numel()
    if n:
        kernel[(triton.cdiv(n, 64),)](c.view(torch.uint8), input.contiguous(), other.contiguous(), o, n, BLOCK=64)
    return o
