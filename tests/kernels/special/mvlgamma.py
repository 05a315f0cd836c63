"""Orders, types, layouts; poles."""

CASES = {
    "aten::mvlgamma": [
        ("f32[33,7]u", 1),
        ("f32(1.5, 2, 3, 10, 30, inf, nan)", 3),
        ("f64[3,2,4]{1,3,6}u", 5),
        ("i32(2, 3, 4, 20)", 2),
        ("bf16(3, 4, 5.5, 30)", 4),
        ("f16(3, 4, 5.5, 30)", 2),
    ],
}
FAULTS = {"one argument for all": ("x - 0.5 * k", "x - 0.0 * k")}
REFUSED = {"aten::mvlgamma": [("f32[5]", 0)]}
