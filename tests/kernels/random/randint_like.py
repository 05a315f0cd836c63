"""OpInfo's samples, types and layouts."""

OPINFO = 2
CASES = {
    "aten::randint_like": [
        ("f32[250,33]{1,250}", 6),
        ("f32[33,250]", 1000, {"dtype": "torch.bfloat16"}),
    ],
    "aten::randint_like.generator": [
        ("i32[33,250]", 100, {"generator": None}),
    ],
    "aten::randint_like.low_dtype": [
        ("i64[33,250]", -3, 5),
    ],
    "aten::randint_like.low_generator_dtype": [
        ("f32[33,250]", -300, 4000, {"generator": None, "dtype": "torch.int16"}),
    ],
}

FAULTS = {"low is not drawn": ("shares.to(tl.int64) + low", "tl.maximum(shares.to(tl.int64), 1) + low")}
