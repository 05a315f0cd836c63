# op: addmm
# name: addmm_epilogue
# technique: bias broadcast by strides in the epilogue, beta == 0 ignores the bias (NaN safe) through a constexpr


@triton.jit
def addmm_kernel(i_ptr, a_ptr, b_ptr, o_ptr, M, N, K, si0, si1, sa0, sa1, sb0, sb1, alpha, beta, USE_BIAS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in tl.range(0, K, BK):
        rk = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * sa0 + rk[None, :] * sa1, (rm[:, None] < M) & (rk[None, :] < K), 0.0)
        b = tl.load(b_ptr + rk[:, None] * sb0 + rn[None, :] * sb1, (rk[:, None] < K) & (rn[None, :] < N), 0.0)
        acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc=acc, allow_tf32=False)
    acc = acc * alpha
    inside = (rm < M)[:, None] & (rn < N)[None, :]
    if USE_BIAS:
        bias = tl.load(i_ptr + rm[:, None] * si0 + rn[None, :] * si1, mask=inside, other=0.0)
        acc += beta * bias.to(tl.float32)
    tl.store(o_ptr + rm[:, None] * N + rn[None, :], acc.to(o_ptr.dtype.element_ty), mask=inside)


def wrapper(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    (M, K), N = mat1.shape, mat2.shape[1]
    bias = input.expand(M, N)
    o = mat1.new_empty((M, N))
    if o.numel() == 0:
        return o
    addmm_kernel[triton.cdiv(M, 32), triton.cdiv(N, 32)](
        bias, mat1, mat2, o, M, N, K, *bias.stride(), *mat1.stride(), *mat2.stride(), float(alpha), float(beta),
        USE_BIAS=beta != 0, BM=32, BN=32, BK=32,
    )
    return o
