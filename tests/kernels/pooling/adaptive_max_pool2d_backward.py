"""What the forward chose."""

CASES = {
    "aten::adaptive_max_pool2d_backward": [
        ("f32[2,3,1,1]", "f32[2,3,7,9]", "i64[2,3,1,1]<63"),
    ],
}
