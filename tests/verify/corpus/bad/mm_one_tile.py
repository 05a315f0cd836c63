# op: mm
# name: mm_one_tile
# family: F
# tries: a single program computes the first 64 x 64 tile; the rest is zero
# should be caught by: input variation (sizes beyond each literal)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_tile(a_ptr, b_ptr, c_ptr, M, N, K, B: tl.constexpr):
    m, n = tl.arange(0, B), tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(K):
        a = tl.load(a_ptr + m * K + k, mask=m < M, other=0).to(tl.float32)
        b = tl.load(b_ptr + k * N + n, mask=n < N, other=0).to(tl.float32)
        acc += a[:, None] * b[None, :]
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=inside)


def wrapper(input, mat2):
    (M, K), N = input.shape, mat2.shape[1]
    o = torch.zeros((M, N), dtype=input.dtype, device=input.device)
    kernel_tile[(1,)](input.contiguous(), mat2.contiguous(), o, M, N, K, B=64)
    return o
