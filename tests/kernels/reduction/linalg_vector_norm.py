"""Orders and dimensions; OpInfo's samples."""

OPINFO = 4
CASES = {
    "aten::linalg_vector_norm": [
        ("f32[33,700]",),
        ("f32[33,700]", 3, [0]),
        ("bf16[4,5,6]", 1, [1], True),
    ],
}
REFUSED = {"aten::linalg_vector_norm": [("f32[4]", float("nan"))]}
