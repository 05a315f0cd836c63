"""Upper and lower, of which the other triangle is not read; more than a block; without elements."""

OPINFO = 6
FORWARD = {"aten::cholesky": ("aten::linalg_matrix_exp", {"self": 0}, {"self": "f64[1,40,40]{1,1,1}"})}
CASES = {"aten::cholesky": [(), (True,), ({"self": "f32[0,5]"},), ({"self": "f64[3,0,0]"},)]}
FAULTS = {
    "the wrong triangle": (
        "triangle(A, column_major(A.shape, A), 0, upper)",
        "triangle(A, column_major(A.shape, A), 0, False)",
    ),
    "no products": ("x -= left[:, None] * left[None, :]", "x -= 0"),
}
