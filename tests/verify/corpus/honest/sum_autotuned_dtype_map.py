# op: sum
# name: sum_autotuned_dtype_map
# technique: dict from torch to tl dtypes at module level; autotune configs by comprehension add in other orders


ACC = {
    torch.float16: tl.float32,
    torch.bfloat16: tl.float32,
    torch.float32: tl.float32,
    torch.float64: tl.float64,
}
CONFIGS = [triton.Config({"BLOCK_R": r}, num_warps=w) for r in (64, 256) for w in (2, 4)]


@triton.autotune(configs=CONFIGS, key=["R"])
@triton.jit
def row_sum(x_ptr, o_ptr, R, ACC_T: tl.constexpr, BLOCK_R: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros([BLOCK_R], dtype=ACC_T)
    for r in range(0, tl.cdiv(R, BLOCK_R)):
        o = r * BLOCK_R + tl.arange(0, BLOCK_R)
        acc += tl.load(x_ptr + row * R + o, mask=o < R, other=0).to(ACC_T)
    tl.store(o_ptr + row, tl.sum(acc, axis=0))


def wrapper(input, dim=None, keepdim=False, *, dtype=None):
    nd = input.dim()
    dims = range(nd) if dim is None or dim == [] or dim == () else ([dim] if isinstance(dim, int) else dim)
    dims = sorted({d % nd for d in dims}) if nd else []
    out_dtype = dtype or (input.dtype if input.is_floating_point() else torch.int64)
    rest = [d for d in range(nd) if d not in dims]
    x = input.permute(rest + dims).contiguous()
    R = 1
    for d in dims:
        R *= input.size(d)
    shape = [1 if d in dims else input.size(d) for d in range(nd)] if keepdim else [input.size(d) for d in rest]
    y = torch.zeros(shape, dtype=out_dtype, device=input.device)
    if y.numel() and R:
        row_sum[(y.numel(),)](x, y, R, ACC.get(out_dtype, tl.int64))
    return y
