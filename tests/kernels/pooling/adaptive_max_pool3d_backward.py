"""What the forward chose."""

CASES = {
    "aten::adaptive_max_pool3d_backward": [
        ("f32[2,3,1,1,1]", "f32[2,3,5,6,7]", "i64[2,3,1,1,1]<100"),
    ],
}
