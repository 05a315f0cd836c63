"""Training and not; gradients that are asked for and not."""

CASES = {
    "aten::native_batch_norm_backward": [
        ("f32[5,7,3,4]", "f32[5,7,3,4]", "f32[7]", None, None, "f32[7]", "f32[7]u", True, 1e-05, [True, True, True]),
        (
            "f32[3,7,13,16]",
            "f32[3,7,13,16]",
            "f32[7]",
            None,
            None,
            "f32[7]",
            "f32[7]u",
            True,
            1e-05,
            [True, True, True],
        ),
        ("bf16[3,7,208]", "bf16[3,7,208]", "f32[7]", "f32[7]", "f32[7]u", None, None, False, 1e-05, [True] * 3),
        ("bf16[5,7,9]", "bf16[5,7,9]", "f32[7]", "f32[7]", "f32[7]u", None, None, False, 1e-05, [True, True, False]),
        ("f32[5,7]", "f32[5,7]", None, "f32[7]", "f32[7]u", "f32[7]", "f32[7]u", False, 1e-05, [True, False, False]),
        ("f16[5,7,9]", "f16[5,7,9]", "f16[7]", None, None, "f32[7]", "f32[7]u", True, 1e-05, [True, True, True]),
    ],
}
FAULTS = {"gradients in the dtype of the statistics": ("dtype if weight is None else weight.dtype", "dtype")}
