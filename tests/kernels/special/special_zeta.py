"""Both sides of where formulas meet; special and denormal values."""

CASES = {
    "aten::special_zeta": [
        ("f32(1.5, 2, 3, 1, 0.5, nan, 10)", "f32(1, 0.5, 3, 2, 2, 1, -1.5)"),
        ("f32(100, 105, 101)", "f32(2.4, 2.4, -2.5)"),
        ("f64(1.5, 2, 3)", "f64(1, 0.5, 3)"),
        ("i32(2, 3)", "i32(1, 2)"),
    ],
    "aten::special_zeta.other_scalar": [
        ("f32(2, 3)", 2),
    ],
    "aten::special_zeta.self_scalar": [
        (2, "f32(2, 3)"),
    ],
}
