# op: addmm
# name: addmm_beta_zero_times_nan
# family: F
# tries: 0 * NaN: beta = 0 does not silence the input
# should be caught by: compare: beta = 0 with NaN in the input
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    z = tl.program_id(2)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(a_ptr + z * M * K + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        b = tl.load(b_ptr + z * K * N + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + z * M * N + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def product(a, b):
    a, b = a.contiguous(), b.contiguous()
    z, M, K = a.shape
    N = b.shape[2]
    o = torch.empty((z, M, N), dtype=a.dtype, device=a.device)
    if o.numel():
        kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16), z)](a, b, o, M, N, K, BM=16, BN=16, BK=16)
    return o


@triton.jit
def finish(c_ptr, x_ptr, o_ptr, n, beta, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    c = tl.load(c_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, beta * x + alpha * c, mask=i < n)


def wrapper(input, mat1, mat2, *, beta=1, alpha=1):
    c = product(mat1.unsqueeze(0), mat2.unsqueeze(0)).squeeze(0)
    x = input.expand(c.shape).contiguous()
    o = torch.empty_like(c)
    if o.numel():
        finish[(triton.cdiv(o.numel(), 64),)](c, x, o, o.numel(), beta, alpha, BLOCK=64)
    return o
