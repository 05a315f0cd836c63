"""Ranges, and all 64 bits."""

CASES = {
    "aten::random.from": [
        ("i32[33,250]", -7, 12),
        ("i64[33,250]", -(1 << 63), None),
        ("i16[250,33]{1,250}", -300, None),
        ("bf16[33,250]", -1000, 3000),
        ("f32[33,250]", 5, None),
    ],
}

FAULTS = {
    "from 0": ("shares.to(tl.int64) + low", "shares.to(tl.int64)"),
    "same bits in each pair": (
        "tl.join(scaled_word(a, b, many), scaled_word(c, d, many))",
        "tl.join(scaled_word(a, b, many), scaled_word(a, b, many))",
    ),
}
