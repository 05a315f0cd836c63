"""Broadcast, promotion, special values."""

CASES = {
    "aten::special_xlog1py": [
        ("f32[33,70]", "f32[70]u"),
        ("f32(nan, inf, 0., 0., 0., 2)", "f32(1, 2, inf, -1, nan, 0.)"),
        ("bf16[40,30]{1,40}", "bf16[40,30]u"),
        ("i32[7]", "i32[7]<9"),
    ],
    "aten::special_xlog1py.other_scalar": [
        ("f32[33,70]", 2.5),
        ("i32[9]", 2),
    ],
    "aten::special_xlog1py.self_scalar": [
        (2.5, "f32[33,70]u"),
        (0, "f32(nan, 0., -1, inf)"),
    ],
}
