# op: nn.functional.layer_norm
# name: layer_norm_tutorial
# technique: one program a row, next_power_of_2 block over the whole row, HAS_WEIGHT constexpr flags


@triton.jit
def _ln(X, Y, W, B, N, eps, HAS_W: tl.constexpr, HAS_B: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    x = tl.load(X + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    xc = tl.where(mask, x - mean, 0.0)
    var = tl.sum(xc * xc, axis=0) / N
    rstd = 1.0 / tl.sqrt(var + eps)
    y = xc * rstd
    if HAS_W:
        y = y * tl.load(W + cols, mask=mask).to(tl.float32)
    if HAS_B:
        y = y + tl.load(B + cols, mask=mask).to(tl.float32)
    tl.store(Y + row * N + cols, y.to(Y.dtype.element_ty), mask=mask)


def wrapper(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    N = 1
    for s in normalized_shape:
        N *= s
    x = input.contiguous()
    y = torch.empty_like(x)
    if x.numel() == 0:
        return y
    M = x.numel() // N
    w = weight.contiguous() if weight is not None else None
    b = bias.contiguous() if bias is not None else None
    BLOCK_N = triton.next_power_of_2(N)
    num_warps = min(max(BLOCK_N // 256, 1), 8)
    _ln[(M,)](x, y, w, b, N, eps, HAS_W=w is not None, HAS_B=b is not None, BLOCK_N=BLOCK_N, num_warps=num_warps)
    return y
