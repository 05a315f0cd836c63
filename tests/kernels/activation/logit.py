"""Layouts and special values."""

CASES = {
    "aten::logit": [
        ("f32[33,70]u",),
        ("f32(nan, 0., 1, 2, -1, 0.5)", 0.1),
        ("bf16[40,30]{1,40}u", 0.2),
        ("f64[9]u",),
        ("i32[5]", 0.1),
    ],
}
