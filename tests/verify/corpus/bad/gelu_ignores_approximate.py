# op: nn.functional.gelu
# name: gelu_ignores_approximate
# family: F
# tries: always the erf form; the tanh form differs by up to 5e-4
# should be caught by: tolerance tight enough; argument-dropped mutant
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, (0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))).to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, *, approximate="none"):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
