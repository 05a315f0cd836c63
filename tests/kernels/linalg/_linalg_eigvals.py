"""Real and complex eigenvalues, equal ones; no elements."""

CASES = {
    "aten::_linalg_eigvals": [
        ("f64[2,3,3]",),
        ("f32[2,4,4]{1,2,8}",),
        ("f64[9,9]",),
        ("f32[5,5]=1",),
        ("f64[1,1]",),
        ("f32[2,0,0]",),
    ],
}
FAULTS = {
    "no conjugates": ("tl.where(second, -size, size)", "size"),
    "not scaled back": ("real / scale", "real"),
}
