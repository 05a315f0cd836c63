"""Groups, layouts, parameters."""

CASES = {
    "aten::native_group_norm_backward": [
        ("f32[5,6,3,4]", "f32[5,6,3,4]", "f32[5,3]", "f32[5,3]u", "f32[6]", 5, 6, 12, 3, [True, True, True]),
        ("f32[2,6,50]", "f32[2,6,50]", "f32[2,2]", "f32[2,2]u", None, 2, 6, 50, 2, [True, False, False]),
    ],
}
