# op: mm
# name: mm_last_row_missing
# family: F
# tries: the mask of the rows is one short when M is no multiple of the block
# should be caught by: poisoned allocations; odd sizes
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(K):
        a = tl.load(a_ptr + m * K + k, mask=m < M, other=0)
        acc += a[:, None] * tl.load(b_ptr + k * N + n, mask=n < N, other=0)[None, :]
    last = M - 1 if M % BM else M
    inside = (m < last)[:, None] & (n < N)[None, :]
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=inside)


def wrapper(input, mat2):
    (M, K), N = input.shape, mat2.shape[1]
    o = torch.empty((M, N), dtype=input.dtype, device=input.device)
    if o.numel():
        grid = (triton.cdiv(M, 16), triton.cdiv(N, 16))
        kernel[grid](input.contiguous(), mat2.contiguous(), o, M, N, K, BM=16, BN=16)
    return o
