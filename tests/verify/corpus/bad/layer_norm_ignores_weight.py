# op: native_layer_norm
# name: layer_norm_ignores_weight
# family: F
# tries: weight and bias are dropped, as for a fresh module
# should be caught by: input variation; argument-dropped mutant
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_row(x_ptr, o_ptr, mean_ptr, rstd_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0).to(tl.float32)
    mean = tl.sum(x, 0) / n
    centred = tl.where(i < n, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / n + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    tl.store(o_ptr + row * n + i, (centred * rstd).to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, normalized_shape, weight, bias, eps):
    x = input.contiguous()
    n = math.prod(normalized_shape)
    kept = list(x.shape[: x.dim() - len(normalized_shape)])
    o = torch.empty_like(x)
    mean = torch.empty(kept + [1] * len(normalized_shape), dtype=torch.float32, device=x.device)
    rstd = torch.empty_like(mean)
    if o.numel():
        kernel_row[(mean.numel(),)](x, o, mean, rstd, n, eps, BLOCK=triton.next_power_of_2(n))
    return o, mean, rstd
