"""Blocks of one and of two; broadcast batches; more than a tile; no elements."""

OPINFO = 6
factored = ("aten::linalg_ldl_factor_ex", {"LD": 0, "pivots": 1})
FORWARD = {"aten::linalg_ldl_solve": (*factored, {"self": "f64[2,40,40]"})}
CASES = {
    "aten::linalg_ldl_solve": [
        ({"B": "f64[2,40,3]"},),
        ({"B": "f64[40,50]{1,40}", "hermitian": True},),
        ({"B": "f64[3,1,40,2]"},),
        ({"B": "f64[2,40,0]"},),
    ],
}
FAULTS = {
    "rows as they were": (
        "tl.abs(number) - 1, n, cols, mask, stride)\n        x =",
        "end, n, cols, mask, stride)\n        x =",
    ),
    "blocks of one": ("pair = (number < 0) & (k + 1 < n)", "pair = (number < 0) & (k < 0)"),
    "no way back": ("total -= tl.sum(t[:, None] * x, 0)", "total -= 0"),
}
