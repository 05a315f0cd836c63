"""Half precision, in which windows begin elsewhere; samples outside of [0, 1); more of them than planes."""

CASES = {
    "aten::fractional_max_pool3d": [
        ("f32[2,3,7,9,5]", [2, 3, 2], [3, 4, 2], "f32[2,3,3]u"),
        ("bf16[1,5,61,9,8]{21960,1,360,40,5}", [2, 2, 1], [57, 1, 5], "bf16[3,5,3]u"),
        ("f16[3,4,60,40]", [1, 6, 6], [3, 33, 5], "f16[1,3,3]u"),
        ("f64[1,2,9,18,20]", [6, 9, 11], [3, 3, 5], "f64[1,2,3]u"),
        ("f32[1,1,9,9,9]", [2, 2, 2], [4, 4, 4], "f32[1,1,3]=-7.5"),
    ],
}
FAULTS = {"the sample of the other axis": ("REVERSED=axes == 2", "REVERSED=axes == 3")}
REFUSED = {
    "aten::fractional_max_pool3d": [
        ("f32[2,3,7,9,5]", [2, 3, 2], [3, 4, 2], "f32[1,3,3]u"),
        ("f32[2,3,7,9,5]", [2, 3, 2], [3, 4, 2], "f32[2,3,2]u"),
    ],
}
