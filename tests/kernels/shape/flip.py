"""Dimensions."""

OPINFO = 4
CASES = {
    "aten::flip": [
        ("f32[33,70]", [1]),
        ("f32[33,70]{1,33}", [0, -1]),
        ("i64[3,5,4]", [0, 2]),
        ("f32[5]", []),
    ],
}
FAULTS = {
    "one too far": ("(source.shape[d] - 1) * source.stride(d)", "(source.shape[d] - 2) * source.stride(d)"),
}
