# op: cat
# honest-but-unusual: a list of tensors; each is copied by a launch of its own into a narrowed view of the result, through that
# view's strides; empty one-dimensional tensors among them are skipped, types are promoted.


@triton.jit
def kernel_place(x_ptr, o_ptr, n, width, step, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + (i // width) * step + i % width, x.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(tensors, dim=0):
    kind = tensors[0].dtype
    for t in tensors:
        kind = torch.promote_types(kind, t.dtype)
    parts = [t for t in tensors if t.shape != (0,)]
    if not parts:
        return torch.empty((0,), dtype=kind, device=tensors[0].device)
    d = dim % parts[0].dim()
    shape = list(parts[0].shape)
    shape[d] = sum(t.shape[d] for t in parts)
    o = torch.empty(shape, dtype=kind, device=parts[0].device)
    step, at = math.prod(shape[d:]), 0
    for t in parts:
        n = t.numel()
        if n:
            target = o.narrow(d, at, t.shape[d])
            kernel_place[(triton.cdiv(n, 128),)](t.contiguous(), target, n, math.prod(t.shape[d:]), step, BLOCK=128)
        at += t.shape[d]
    return o
