"""From the left and the right, transposed; broadcast batches; more than a block."""

OPINFO = 6
factored = ("aten::linalg_lu_factor_ex", {"LU": 0, "pivots": 1})
FORWARD = {"aten::linalg_lu_solve": (*factored, {"A": "f64[2,40,40]"})}
CASES = {
    "aten::linalg_lu_solve": [
        ({"B": "f64[2,40,3]"},),
        ({"B": "f64[40,3]", "adjoint": True},),
        ({"B": "f64[3,1,5,40]", "left": False},),
        ({"B": "f64[5,40]{1,5}", "left": False, "adjoint": True},),
    ],
}
FAULTS = {
    "rows as they were": (
        "source = tl.where(source == k, other, tl.where(source == other, k, source))",
        "source = rows",
    ),
    "one direction": ("adjoint if left else not adjoint", "adjoint"),
}
