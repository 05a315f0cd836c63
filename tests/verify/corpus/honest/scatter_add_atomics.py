# op: scatter_add
# name: scatter_add_atomics
# technique: clone the destination, then atomics from every index


@triton.jit
def scatter_kernel(dst_ptr, idx_ptr, src_ptr, n, d0, d1, d2, t0, t1, t2, s0, s1, s2, DIM: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    c2 = i % d2
    c1 = (i // d2) % d1
    c0 = i // (d1 * d2)
    j = tl.load(idx_ptr + i, mask=m, other=0)
    v = tl.load(src_ptr + c0 * s0 + c1 * s1 + c2 * s2, mask=m, other=0)
    if DIM == 0:
        off = j * t0 + c1 * t1 + c2 * t2
    elif DIM == 1:
        off = c0 * t0 + j * t1 + c2 * t2
    else:
        off = c0 * t0 + c1 * t1 + j * t2
    tl.atomic_add(dst_ptr + off, v, mask=m)


def _pad3(t):
    while t.dim() < 3:
        t = t.unsqueeze(0)
    return t


def wrapper(input, dim, index, src):
    o = input.clone(memory_format=torch.contiguous_format)
    if index.numel() == 0:
        return o
    nd = max(input.dim(), 1)
    if nd > 3:
        raise NotImplementedError("at most 3 dimensions")
    d = dim % nd + 3 - nd
    o3, i3, s3 = _pad3(o), _pad3(index.contiguous()), _pad3(src)
    n = i3.numel()
    scatter_kernel[(triton.cdiv(n, 64),)](o3, i3, s3, n, *i3.shape, *o3.stride(), *s3.stride(), DIM=d, BLOCK=64)
    return o
