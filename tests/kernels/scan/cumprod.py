"""Rows, columns, long ones; dtypes."""

OPINFO = 4
CASES = {
    "aten::cumprod": [
        ("i64[3,30000]=3", 1),
        ("f32[1,1600]=1.001", 1),
        ("bf16[2,300,33]", 1),
        ("i64[40,70]{1,40}", 1),
        ("bool[9,300]", -1),
        ("u8[9]<3", 0, {"dtype": "torch.float32"}),
        ("f64[]", 0),
        ("f32[3000,20]{1,3000}=1", 1),
    ],
}
FAULTS = {
    "nothing carried": ("carry = joined_after(carry, come_to(values, KIND), KIND)", "carry = carry"),
}
