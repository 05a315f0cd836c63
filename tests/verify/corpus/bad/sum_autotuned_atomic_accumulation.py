# op: sum
# name: sum_autotuned_atomic_accumulation
# family: G
# tries: autotuned atomic accumulation without reset_to_zero: the tuning runs add to the result too
# should be caught by: repeat: the autotuner's timing runs the kernel, as it does on a GPU; repeat on the largest case
# outcome: WRONG
# layer: repeat


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.atomic_add(o_ptr + row, tl.sum(x, 0))


def as_rows(input, dim, keepdim):
    rank = input.dim()
    dims = [dim] if isinstance(dim, int) else list(dim or range(rank))
    dims = sorted({d % rank for d in dims}) if rank else []
    kept = [d for d in range(rank) if d not in dims]
    shape = [1 if d in dims else s for d, s in enumerate(input.shape) if keepdim or d not in dims]
    n = math.prod(input.shape[d] for d in dims)
    return input.permute(kept + dims).contiguous().view(math.prod(shape), n), shape


def wrapper(input, dim=None, keepdim=False, *, dtype=None):
    x, shape = as_rows(input, dim, keepdim)
    o = torch.zeros(shape, dtype=dtype or input.dtype, device=input.device)
    if x.numel():
        n = x.shape[1]
        kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]), o.numel())](x, o, n)
    return o
