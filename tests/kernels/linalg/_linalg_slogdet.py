"""Batches, contiguous or not; a determinant of 0; no elements; more than a block."""

OPINFO = 4
CASES = {
    "aten::_linalg_slogdet": [
        ("f64[2,3,3]",),
        ("f32[40,40]{1,40}",),
        ("f32[4,4]=0",),
        ("f64[2,0,0]",),
        ("f64[2,2,5,5]{50,25,1,5}",),
    ],
}
FAULTS = {
    "no sign": ("product *= sign_of(x)", "product *= 1"),
    "never transposed": ("A.mT if A.is_contiguous() else A", "A"),
}
