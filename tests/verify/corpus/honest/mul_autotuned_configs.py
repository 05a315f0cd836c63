# op: mul
# honest-but-unusual: a list of configurations from a comprehension, a key of two arguments, a heuristic over the chosen block,
# a tl.constexpr module constant that the kernel reads, and `other` may be a Python number.

CONFIGS = [triton.Config({"BLOCK": size}, num_warps=4) for size in (256,)]
ONE = tl.constexpr(1)


@triton.autotune(configs=CONFIGS, key=["n", "step"])
@triton.heuristics(values={"WHOLE": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def kernel_mul(x_ptr, y_ptr, o_ptr, n, step, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    if WHOLE:
        mask = i >= 0
    x = tl.load(x_ptr + i, mask=mask, other=ONE)
    y = tl.load(y_ptr + i * step, mask=mask, other=ONE)
    kind = o_ptr.dtype.element_ty
    tl.store(o_ptr + i, x.to(kind) * y.to(kind), mask=mask)


def on_tensor(other, like: torch.Tensor) -> torch.Tensor | None:
    if isinstance(other, torch.Tensor):
        return other
    return torch.full((), other, dtype=torch.result_type(like, other), device=like.device)


def wrapper(input, other):
    kind = torch.result_type(input, other)
    other = on_tensor(other, input)
    x, y = torch.broadcast_tensors(input, other)
    step = 0 if other.numel() == 1 else 1
    o = torch.empty(x.shape, dtype=kind, device=input.device)
    n = o.numel()
    if n:
        y = other.reshape(1) if step == 0 else y.contiguous()
        target, x = (o.view(torch.uint8), x.contiguous()) if kind == torch.bool else (o, x.contiguous())
        kernel_mul[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, target, n, step)
    return o
