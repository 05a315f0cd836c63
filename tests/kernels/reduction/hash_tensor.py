"""Rows, columns and all; results of many elements; NaN, zeros and infinities."""

OPINFO = 4
CASES = {
    "aten::hash_tensor": [
        ("f32[33,70]{1,33}", [0]),
        ("f32[33,70]", [-1], {"keepdim": True}),
        ("bf16[5,40,30]", [0, 2]),
        ("i64[20000]",),
        ("i8[3,30000]", [1]),
        ("f64[70,200]{1,70}", [1]),
        ("f16(nan, -0., inf, 0.00001, 3)",),
        ("u8[0,3]", [1], {"keepdim": True}),
        ("bool[]", [-1]),
    ],
    "aten::hash_tensor.out": [
        ("f32[33,70]", [1], {"out": "u64[33]{2}"}),
        ("f32[33,70]", {"out": "u64[]"}),
    ],
}
FAULTS = {
    "what comes last": ("acc ^= tl.where", "acc = tl.where"),
    "of unsigned ones": ("bits = x.to(tl.int64)\n", "bits = x.to(tl.int64) & 255\n"),
}
REFUSED = {"aten::hash_tensor": [("f32[2,3]", [0], {"mode": 1})]}
