"""Half precision, in which windows begin elsewhere; samples outside of [0, 1); more of them than planes."""

CASES = {
    "aten::fractional_max_pool2d": [
        ("f32[2,3,7,9]", [2, 3], [3, 4], "f32[2,3,2]u"),
        ("bf16[2,15,61,9]{8235,1,135,15}", [2, 2], [57, 1], "bf16[3,15,2]u"),
        ("f16[3,60,40]", [6, 6], [33, 5], "f16[1,3,2]u"),
        ("f64[1,2,50,50]{5000,1,100,2}", [23, 25], [7, 9], "f64[1,2,2]u"),
        ("f32[1,1,9,9]", [2, 2], [4, 4], "f32[1,1,2]=-7.5"),
        ("f32[2,2,4,5]", [0, 2], [3, 3], "f32[2,2,2]u"),
    ],
}
FAULTS = {
    "the sample of the other axis": ("REVERSED=axes == 2", "REVERSED=axes == 3"),
    "starts that are not rounded": (
        "sizes[k + 2], lasts[k], u.dtype, ACC)",
        "sizes[k + 2], lasts[k], ACC, ACC)",
    ),
}
