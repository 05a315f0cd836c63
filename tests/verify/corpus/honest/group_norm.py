# op: nn.functional.group_norm
# name: group_norm
# technique: a program for each (batch, group) on a 2-D grid, dummy pointer for absent weight, loop over the group twice


@triton.jit
def gn_kernel(x_ptr, y_ptr, w_ptr, b_ptr, G, CPG, HW, eps, HAS_W: tl.constexpr, HAS_B: tl.constexpr, BLOCK: tl.constexpr):
    n = tl.program_id(0)
    g = tl.program_id(1)
    size = CPG * HW
    base = (n * G + g) * size
    s = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, size, BLOCK):
        o = start + tl.arange(0, BLOCK)
        s += tl.load(x_ptr + base + o, mask=o < size, other=0.0).to(tl.float32)
    mean = tl.sum(s, axis=0) / size
    v = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, size, BLOCK):
        o = start + tl.arange(0, BLOCK)
        m = o < size
        d = tl.load(x_ptr + base + o, mask=m, other=0.0).to(tl.float32) - mean
        v += tl.where(m, d * d, 0.0)
    rstd = tl.rsqrt(tl.sum(v, axis=0) / size + eps)
    for start in range(0, size, BLOCK):
        o = start + tl.arange(0, BLOCK)
        m = o < size
        y = (tl.load(x_ptr + base + o, mask=m, other=0.0).to(tl.float32) - mean) * rstd
        c = g * CPG + o // HW
        if HAS_W:
            y *= tl.load(w_ptr + c, mask=m, other=1.0).to(tl.float32)
        if HAS_B:
            y += tl.load(b_ptr + c, mask=m, other=0.0).to(tl.float32)
        tl.store(y_ptr + base + o, y.to(y_ptr.dtype.element_ty), mask=m)


def wrapper(input, num_groups, weight=None, bias=None, eps=1e-05):
    x = input.contiguous()
    y = torch.empty_like(x)
    if x.numel() == 0:
        return y
    N, C = x.shape[0], x.shape[1]
    HW = x.numel() // (N * C)
    has_w, has_b = weight is not None, bias is not None
    w = weight.contiguous() if has_w else x
    b = bias.contiguous() if has_b else x
    gn_kernel[(N, num_groups)](x, y, w, b, num_groups, C // num_groups, HW, eps, has_w, has_b, BLOCK=128)
    return y
