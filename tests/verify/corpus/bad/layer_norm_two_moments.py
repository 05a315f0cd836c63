# op: native_layer_norm
# name: layer_norm_two_moments
# family: S
# tries: the variance as E[x^2] - E[x]^2: cancels where the mean is large
# should be caught by: input variation (large mean); float64 reference
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_row(x_ptr, w_ptr, b_ptr, o_ptr, mean_ptr, rstd_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0).to(tl.float32)
    mean = tl.sum(x, 0) / n
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, 0) / n - mean * mean + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    y = (x - mean) * rstd
    if w_ptr is not None:
        y *= tl.load(w_ptr + i, mask=i < n, other=0)
    if b_ptr is not None:
        y += tl.load(b_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + row * n + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, normalized_shape, weight, bias, eps):
    x = input.contiguous()
    n = math.prod(normalized_shape)
    kept = list(x.shape[: x.dim() - len(normalized_shape)])
    o = torch.empty_like(x)
    mean = torch.empty(kept + [1] * len(normalized_shape), dtype=torch.float32, device=x.device)
    rstd = torch.empty_like(mean)
    w = None if weight is None else weight.contiguous()
    b = None if bias is None else bias.contiguous()
    if o.numel():
        kernel_row[(mean.numel(),)](x, w, b, o, mean, rstd, n, eps, BLOCK=triton.next_power_of_2(n))
    return o, mean, rstd
