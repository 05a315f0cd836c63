"""Blocks of one and of two, exchanged and not; batches; more than a tile; the lower triangle alone is read; columns of
zeros; no elements."""

OPINFO = 4
CASES = {
    "aten::linalg_ldl_factor_ex": [
        ("f64[2,5,5]",),
        ("f32[70,70]",),
        ("f64[2,2,17,17]{578,289,1,17}", {"hermitian": True}),
        ("f32[1,3,3]{1,1,3}", {"check_errors": True}),
        ("f32[3,3]=0",),
        ("f32[2,0,0]",),
    ],
}
FAULTS = {
    "blocks of one": ("pair = middle < 0.6403882032022076 * its", "pair = middle < 0"),
    "no exchange": ("if row != end:", "if row < 0:"),
    "one of two columns": ("- y[:, None] * w[None, :], mask=mask)", ", mask=mask)"),
    "info of the last": ("tl.where(info == 0, k + 1, info)", "(k + 1)"),
}
