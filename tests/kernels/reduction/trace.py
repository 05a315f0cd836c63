"""Square and not; layouts."""

OPINFO = 4
CASES = {
    "aten::trace": [
        ("f32[300,300]",),
        ("bf16[33,70]{1,33}",),
        ("i8[4,5]",),
        ("f64[0,5]",),
    ],
}
