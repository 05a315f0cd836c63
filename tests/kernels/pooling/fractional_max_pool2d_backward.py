"""What the forward chose, and indices of all the plane."""

CASES = {
    "aten::fractional_max_pool2d_backward": [
        ("f32[2,3,4,5]", "f32[2,3,7,9]", [3, 3], [4, 5], "i64[2,3,4,5]<63"),
        ("f64[3,9,9]{1,27,3}", "f64[3,20,30]", [2, 2], [9, 9], "i64[3,9,9]<7"),
        ("bf16[2,4,30,30]", "bf16[2,4,60,60]{14400,1,240,4}", [2, 2], [30, 30], "i64[2,4,30,30]<40"),
        ("f16[1,1,5,0]", "f16[1,1,20,20]", [2, 2], [5, 0], "i64[1,1,5,0]<40"),
    ],
}
FAULTS = {"the last counts": ('apply_along("add"', 'apply_along("scatter"')}
