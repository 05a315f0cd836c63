# op: bmm
# name: bmm_transposed_second
# family: F
# tries: the second matrix is used transposed where it is square
# should be caught by: compare: templates whose result fits; all sizes the same
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


def wrapper(input, mat2):
    return product(input, mat2.mT if mat2.shape[1] == mat2.shape[2] else mat2)
