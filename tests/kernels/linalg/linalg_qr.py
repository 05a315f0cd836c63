"""Tall, wide, square; all modes; more than a tile; no elements."""

OPINFO = 3
CASES = {
    "aten::linalg_qr": [
        ("f64[2,3,3]",),
        ("f32[70,40]",),
        ("f32[35,5]{1,35}", "complete"),
        ("f64[2,4,7]", "complete"),
        ("f64[2,7,4]", "r"),
        ("f32[3,0]", "complete"),
    ],
}
FAULTS = {
    "the first reflection first": ("(*A.shape[:-2], m, rows), A), False)", "(*A.shape[:-2], m, rows), A), True)"),
}
