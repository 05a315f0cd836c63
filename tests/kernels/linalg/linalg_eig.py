"""Real and complex eigenvalues; batches that lie otherwise; equal eigenvalues, no elements."""

OPINFO = 2
CASES = {
    "aten::linalg_eig": [
        ("f64[2,3,3]",),
        ("f32[2,4,4]{1,2,8}",),
        ("f64[12,12]",),
        ("f32[5,5]=1",),
        ("f64[1,1]",),
        ("f32[2,0,0]",),
    ],
}
FAULTS = {
    "too few steps": ("EIGEN_STEPS = 30", "EIGEN_STEPS = 1"),
    "no reflections": ("divisor, tau, BLOCK)", "divisor, tau * 0, BLOCK)"),
    "not of length 1": ("tl.store(pair_ptr, real / length, mask=mask)", "tl.store(pair_ptr, real, mask=mask)"),
    "no conjugates": ("tl.where(second, -size, size)", "size"),
    "no vectors of the matrix": (
        "real += z * tl.load(element_ptr, mask=lanes < n",
        "real += tl.load(element_ptr, mask=lanes < n",
    ),
}
