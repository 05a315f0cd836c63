"""Both sides of where formulas meet; special values."""

CASES = {
    "aten::polygamma": [
        (0, "f32[33,7]"),
        (1, "f32[33,7]"),
        (2, "f32[33,7]u"),
        (3, "f64[9]u"),
        (1, "i32(1, 2, 5)"),
        (4, "bf16[40]u"),
    ],
}
