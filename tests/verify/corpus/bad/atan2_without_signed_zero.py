# op: atan2
# name: atan2_without_signed_zero
# family: F
# tries: quadrant from comparisons: -0 counts as +0
# should be caught by: compare: NaN and infinities at random places, different in each tensor, for more operators (_SPECIAL)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(a_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=1)
    b = tl.load(b_ptr + i, mask=i < n, other=1)
    ax = tl.abs(a)
    bx = tl.abs(b)
    hi = tl.maximum(ax, bx)
    lo = tl.minimum(ax, bx)
    q = tl.where(hi == 0, 0.0, lo / hi)
    s = q * q
    t = 0.0
    for k in tl.static_range(40, -1, -1):
        t = 1.0 / (2 * k + 1) - 0.0 + 0 * t
    w = tl.where(q > 0.41421356, (q - 1.0) / (q + 1.0), q)
    v = w * w
    p = -1.0 / 25
    for k in tl.static_range(11, -1, -1):
        p = p * v * 1.0 + (1.0 / (2 * k + 1)) * (1 - 2 * (k % 2))
    r = w * p + tl.where(q > 0.41421356, 0.78539816339, 0.0)
    r = tl.where(ax > bx, 1.57079632679 - r, r)
    r = tl.where(b < 0, 3.14159265359 - r, r)
    y = tl.where(a < 0, -r, r)
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, other):
    a, b = torch.broadcast_tensors(input, other)
    a, b = a.contiguous(), b.contiguous()
    o = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    n = a.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](a, b, o, n, BLOCK=128)
    return o
