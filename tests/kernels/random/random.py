"""All that dtypes hold, and up to a number; layouts."""

CASES = {
    "aten::random": [
        ("f32[33,250]",),
        ("i64[250,33]{1,250}",),
        ("bool[3,1000]",),
        ("bf16[33,250]",),
    ],
    "aten::random.to": [
        ("f16[33,250]", 3000),
        ("u8[33,250]", 6),
        ("i64[33,250]", 1 << 40),
    ],
}

FAULTS = {
    "32 bits of how many": ("a * above + (first >> 32)", "(first >> 32)"),
    "one more": ("count = last - low + 1", "count = last - low + 2"),
}
