# op: native_layer_norm
# honest-but-unusual: Welford's running mean and variance, one element of each lane's own stream at a time, then the lanes
# are merged with tl.reduce over a tuple of three; a second pass over the row normalises. Three results; rows of any length.


@triton.jit
def merge(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    weight = n_b / tl.maximum(n, 1.0)
    delta = mean_b - mean_a
    return mean_a + delta * weight, m2_a + m2_b + delta * delta * n_a * weight, n


@triton.jit
def kernel_norm(x_ptr, w_ptr, b_ptr, o_ptr, mean_ptr, rstd_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    mean = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=0).to(tl.float32)
        more = tl.where(i < n, 1.0, 0.0)
        count += more
        delta = (x - mean) * more
        mean += delta / tl.maximum(count, 1.0)
        m2 += delta * (x - mean)
    mu, square, total = tl.reduce((mean, m2, count), 0, merge)
    rstd = 1.0 / tl.sqrt(square / total + eps)
    tl.store(mean_ptr + row, mu)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        y = (tl.load(x_ptr + row * n + i, mask=i < n, other=0).to(tl.float32) - mu) * rstd
        if w_ptr is not None:
            y *= tl.load(w_ptr + i, mask=i < n, other=0).to(tl.float32)
        if b_ptr is not None:
            y += tl.load(b_ptr + i, mask=i < n, other=0).to(tl.float32)
        tl.store(o_ptr + row * n + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, normalized_shape, weight, bias, eps):
    x = input.contiguous()
    n = math.prod(normalized_shape)
    kept = list(x.shape[: x.dim() - len(normalized_shape)])
    rows = math.prod(kept)
    o = torch.empty_like(x)
    mean = torch.empty(kept + [1] * len(normalized_shape), dtype=torch.float32, device=x.device)
    rstd = torch.empty_like(mean)
    w = None if weight is None else weight.contiguous()
    b = None if bias is None else bias.contiguous()
    if rows > 0:
        kernel_norm[(rows,)](x, w, b, o, mean, rstd, n, eps, BLOCK=32)
    return o, mean, rstd
