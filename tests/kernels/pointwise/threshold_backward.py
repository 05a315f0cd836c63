"""At the threshold and on either side."""

CASES = {
    "aten::threshold_backward": [
        ("f32[33,70]", "f32[33,70]", 0),
        ("f32[4]", "f32(0, -0., 1, nan)", 0),
        ("bf16[40,30]{1,40}", "bf16[40,30]", 0.5),
        ("i64[7]", "i64[7]", 2),
    ],
}
