"""Matrices and vectors, from the left and the right; broadcast batches; more than a tile."""

CASES = {
    "aten::_linalg_solve_ex": [
        ("f64[2,3,3]", "f64[2,3,2]"),
        ("f32[40,40]{1,40}", "f32[40]"),
        ("f64[2,5,5]", "f64[2,5]", {"check_errors": True}),
        ("f64[5,5]", "f64[3,7,5]", {"left": False}),
        ("f64[2,1,4,4]", "f64[3,4,2]"),
        ("f32[0,0]", "f32[0,3]"),
    ],
}
FAULTS = {
    "from the left": ("b.mT, out.mT, True)", "b.mT, out.mT, False)"),
}
