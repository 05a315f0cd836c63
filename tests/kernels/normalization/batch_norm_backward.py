"""Training and not."""

CASES = {
    "aten::batch_norm_backward": [
        (
            "f32[5,7,3,4]",
            "f32[5,7,3,4]",
            "f32[7]",
            None,
            None,
            "f32[7]",
            "f32[7]u",
            True,
            1e-05,
            [True, True, True],
            "u8[0]",
        ),
        (
            "f32[5,7]",
            "f32[5,7]",
            "f32[7]",
            "f32[7]",
            "f32[7]u",
            "f32[7]",
            "f32[7]u",
            False,
            1e-05,
            [True, False, False],
            "u8[0]",
        ),
    ],
}
