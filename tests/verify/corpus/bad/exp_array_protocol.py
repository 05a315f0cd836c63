# op: exp
# name: exp_array_protocol
# family: D
# tries: the array protocol gives NumPy's view without .numpy(), DLPack brings the result back
# should be caught by: lint (dunder, torch.from_dlpack); no-kernel replay
# outcome: CHEAT
# layer: lint, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_idle[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return torch.from_dlpack(math.e ** input.detach().contiguous().__array__())
