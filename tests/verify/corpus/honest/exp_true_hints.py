# op: aten::exp
# name: exp_true_hints
# technique: hints that hold: of blocks of offsets, and of a size that was checked by the wrapper


@triton.jit
def kernel(x_ptr, o_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    tl.assume(n > 0)
    if EVEN:
        n = tl.multiple_of(n, 16)
    start = tl.multiple_of(tl.program_id(0) * BLOCK, BLOCK)
    i = tl.max_contiguous(tl.multiple_of(start + tl.arange(0, BLOCK), BLOCK), BLOCK)
    row = tl.max_constancy(i // 16, 16)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + row * 16 + i % 16, mask=i < n)), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, EVEN=n % 16 == 0, BLOCK=128)
    return o
