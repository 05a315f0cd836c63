"""What the forward chose, and indices of all the plane."""

CASES = {
    "aten::fractional_max_pool3d_backward": [
        ("f32[2,3,4,5,2]", "f32[2,3,7,9,5]", [3, 3, 3], [4, 5, 2], "i64[2,3,4,5,2]<315"),
        ("f64[3,4,9,9]{1,108,12,3}", "f64[3,7,20,30]", [2, 2, 2], [4, 9, 9], "i64[3,4,9,9]<7"),
        ("bf16[2,4,5,10,10]", "bf16[2,4,9,20,20]", [2, 2, 2], [5, 10, 10], "i64[2,4,5,10,10]<40"),
    ],
}
FAULTS = {"the last counts": ('apply_along("add"', 'apply_along("scatter"')}
REFUSED = {
    "aten::fractional_max_pool3d_backward": [
        ("f32[2,3,4,5,2]", "f32[2,3,7,9,5]", [3, 3, 3], [4, 5, 2], "i64[2,3,4,5,1]<63"),
    ],
}
