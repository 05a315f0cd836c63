"""Matrices and vectors, from the left and the right; broadcast batches; more than a tile; complex numbers."""

CASES = {
    "aten::_linalg_solve_ex": [
        ("f64[2,3,3]", "f64[2,3,2]"),
        ("f32[40,40]{1,40}", "f32[40]"),
        ("f64[2,5,5]", "f64[2,5]", {"check_errors": True}),
        ("f64[5,5]", "f64[3,7,5]", {"left": False}),
        ("f64[2,1,4,4]", "f64[3,4,2]"),
        ("f32[0,0]", "f32[0,3]"),
        ("c64[2,4,4]{1,2,8}", "c64[2,4,3]"),
        ("c64[40,40]", "c64[40]"),
        ("c128[5,5]", "c128[3,7,5]", {"left": False}),
        ("c64[0,3,3]", "c64[0,3,2]"),
    ],
}
FAULTS = {
    "rows are not exchanged": ("if row != k:\n            exchange_pairs", "if row < 0:\n            exchange_pairs"),
    "from the left": ("solve_factored(t, exchanges, b, out, not left)", "solve_factored(t, exchanges, b, out, False)"),
}
