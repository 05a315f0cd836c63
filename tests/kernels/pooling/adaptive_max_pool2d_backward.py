"""What the forward chose; no channels."""

CASES = {
    "aten::adaptive_max_pool2d_backward": [
        ("f32[2,3,1,1]", "f32[2,3,7,9]", "i64[2,3,1,1]<63"),
        ("f32[0,4,3]", "f32[0,4,4]", "i64[0,4,3]"),
    ],
}
